# The service: Python 3.11, the package, nothing that serves no purpose at run time. No model, no ledger and no key is in the image.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/tacit \
 && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[service,fast,postgresql]"

FROM python:3.11-slim
COPY --from=build /opt/tacit /opt/tacit
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/tacit tacit
USER tacit
WORKDIR /var/lib/tacit
ENV PATH=/opt/tacit/bin:$PATH TACIT_SERVE_HOME=/var/lib/tacit TACIT_SERVE_HOST=0.0.0.0 NUMBA_CACHE_DIR=/tmp/numba
EXPOSE 8000
# Readiness, not mere life: a process without a model is of no use to whoever asks.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
CMD ["tacit", "serve"]
