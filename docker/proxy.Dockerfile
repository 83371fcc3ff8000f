FROM python:3.13-slim
COPY . /source
RUN pip install --no-cache-dir "/source[proxy,redis]" && rm -r /source
USER nobody
ENTRYPOINT ["ndd-search", "serve"]
