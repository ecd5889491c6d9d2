"""Four workers that share one copy of the model: it is loaded before they are forked."""

preload_app = True
workers = 4
bind = "127.0.0.1:8000"
max_requests = 100_000  # a worker is replaced now and then; the new one shares the model, too
max_requests_jitter = 1_000
