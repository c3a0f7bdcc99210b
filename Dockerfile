# A server for one model, mounted at /model/model.delta:
#
#   docker build -t deltarank .
#   docker run --read-only --tmpfs /tmp -p 8000:8000 -v ./recipes.delta:/model/model.delta:ro deltarank
#
# Loops are compiled while the image is built; a start copies them to /tmp, the only place that can
# be written to, where those for another kind of processor can be added.
FROM python:3.12-slim

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
ENV NUMBA_CACHE_DIR=/opt/compiled PYTHONDONTWRITEBYTECODE=1
RUN pip install --no-cache-dir "/src[serve,tables]" \
    && rm -rf /src \
    && useradd --system --uid 10001 --no-create-home server \
    && cd /tmp \
    && deltarank datasets example > recipes.csv \
    && deltarank fit recipes.csv --C 1 --model recipes.delta \
    && deltarank rank recipes.delta recipes.csv > /dev/null \
    && chmod -R a+rX /opt/compiled \
    && rm recipes.csv recipes.delta

USER 10001
EXPOSE 8000
HEALTHCHECK CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health')"
ENV NUMBA_CACHE_DIR=/tmp/compiled
ENTRYPOINT ["sh", "-c", "cp -r /opt/compiled /tmp/ && exec deltarank serve /model/model.delta --host 0.0.0.0 \"$@\"", "--"]
