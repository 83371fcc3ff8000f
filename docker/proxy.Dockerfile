FROM python:3.13 AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[proxy,redis]" && rm -r /wheels \
    && python -c "from ndd_search import native; assert native.core, native.in_use()"
USER nobody
ENTRYPOINT ["ndd-search", "serve"]
