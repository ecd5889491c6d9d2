#!/usr/bin/env bash
# FastAPI behind gunicorn, on a socket for nginx or another proxy.
#
#   examples/deploy/gunicorn/run.sh [socket]      pip install gunicorn fastapi
set -euo pipefail
cd "$(dirname "$0")/../../services"
exec "${PYTHON:-python3}" -m gunicorn --config gunicorn.conf.py --worker-class asgi --bind "unix:${1:-/run/speech/speech.sock}" fastapi_app:app
