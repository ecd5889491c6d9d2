"""Starts each program of examples/services and asks it over loopback; run by `tests.packaging.deploy`."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVICES = ROOT / "examples" / "services"
SOUND = (ROOT / "fastlayers" / "data" / "speech_16k.wav").read_bytes()[44:]
REQUESTS = 200
SECOND = 32_000  # bytes


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def started(command: list[str], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with all that it starts, which ends with the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=SERVICES, stdout=out, stderr=out, start_new_session=True, env={**os.environ, **env}
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def post(port: int, body: bytes, path: str = "/speech") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            post(port, b"")
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"the service did not start:\n{log.read_text()[-3000:]}")


def ask(name: str, port: int) -> None:
    """Many requests at once: the answers to one body are equal to the last digit, whoever gives them."""
    bodies = [SOUND[i * SECOND : (i + 1) * SECOND] for i in range(4)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: post(port, bodies[i % 4]), range(REQUESTS)))
    assert {status for status, _ in answers} == {200}, {status for status, _ in answers}
    found = [json.loads(body) for _, body in answers]
    kinds = {(i % 4, tuple(one["probabilities"])) for i, one in enumerate(found)}
    assert len(kinds) == 4, "answers to one body differ"
    whole = json.loads(post(port, SOUND)[1])["probabilities"]
    assert len(whole) == 222 and sum(p > 0.5 for p in whole) > 190
    wrong = post(port, b"abc")[0]
    assert 400 <= wrong < 500, wrong
    workers = {one.get("worker") for one in found} - {None}
    print(f"{name}: {REQUESTS} requests answered alike" + (f" by {len(workers)} workers" if workers else ""))


QUEUE = """
import sys, celery_app
app = celery_app.app
results = [celery_app.speech.delay(sys.argv[1]) for _ in range(40)]
answers = [result.get(timeout=120) for result in results]
assert len({a["share"] for a in answers}) == 1 and answers[0]["share"] > 0.8, answers
print(len({a["worker"] for a in answers}))
"""


def check(python: Path, work: Path) -> None:
    """Every service, one after the other."""
    tools = python.parent
    port = free_port()
    log = work / "uvicorn.log"
    command = [
        str(tools / "uvicorn"),
        "fastapi_app:app",
        "--workers",
        "2",
        "--port",
        str(port),
        "--timeout-worker-healthcheck",
        "100",
    ]
    with started(command, log) as process:
        ready(port, process, log)
        ask("uvicorn and FastAPI", port)
    for name, more in (("gunicorn", ["wsgi_app:app"]), ("gunicorn and FastAPI", ["--worker-class", "asgi", "fastapi_app:app"])):
        port = free_port()
        log = work / "gunicorn.log"
        command = [
            str(tools / "gunicorn"),
            "--config",
            "gunicorn.conf.py",
            "--bind",
            f"127.0.0.1:{port}",
            "--no-control-socket",
            *more,
        ]
        with started(command, log) as process:
            ready(port, process, log)
            ask(name, port)
    raw, queue = work / "speech.raw", work / "queue"
    raw.write_bytes(SOUND)
    queue.mkdir(exist_ok=True)
    for left in queue.iterdir():
        left.unlink()
    script = "\n".join((
        "import celery_app",
        f"celery_app.app.conf.broker_transport_options = {{'data_folder_in': {str(queue)!r}, 'data_folder_out': {str(queue)!r},",
        f"    'control_folder': {str(queue)!r}}}",
    ))  # fmt: skip
    env = {"BROKER": "filesystem://", "BACKEND": f"file://{queue}"}
    log = work / "celery.log"
    serve = f"{script}\ncelery_app.app.worker_main(['worker', '--concurrency', '2', '--loglevel', 'WARNING'])"
    with started([str(python), "-c", serve], log, **env):
        done = subprocess.run(
            [str(python), "-c", f"{script}\n{QUEUE}", str(raw)], cwd=SERVICES, env={**os.environ, **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"celery:\n{done.stdout}{done.stderr[-2000:]}\n{log.read_text()[-2000:]}")
    print(f"celery: 40 tasks answered alike by {done.stdout.strip()} forked workers")
