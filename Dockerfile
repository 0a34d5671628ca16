# The full agent: all that the light one runs, and scripted checks, with Node and Chromium.
#
#   docker build -t picket-agent-full .
#   docker build -t picket-agent-full --build-arg RUNTIMES=2026.04 .    # one runtime, not both

# Debian's Python is an optimised build: docs/reasons.md has the figures.
FROM debian:12-slim AS python
# No versions: Debian's mirrors keep only the newest security fix of each package.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 tini \
    && rm -rf /var/lib/apt/lists/*

FROM python AS uv
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PYTHON=/usr/bin/python3 \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src
COPY pyproject.toml uv.lock ./

# Node, its libraries and ffmpeg, which seldom change: layers of their own, apart from our code.
FROM uv AS runtimes
ENV UV_PROJECT_ENVIRONMENT=/opt/picket-node
RUN /opt/uv/bin/uv sync --locked --no-default-groups --extra scripts --no-install-project
COPY runners/__init__.py runners/
COPY runners/installation runners/installation
COPY runners/harness/runtimes runners/harness/runtimes
# Ids with a blank between them; none: all.
ARG RUNTIMES=
# Without the headers, which only compilers of native packages read: Dockerfile.dev has them.
RUN /opt/picket-node/bin/python -m runners.installation --folder /opt/picket/runtimes $RUNTIMES \
    && rm -rf /root/.npm

FROM uv AS build
ENV UV_PROJECT_ENVIRONMENT=/opt/picket
# The libraries first: they stay in the builder's cache when only our code changes.
RUN /opt/uv/bin/uv sync --locked --no-default-groups --extra agent --no-install-project
COPY LICENSE README.md ./
COPY contract contract
COPY runners runners
COPY agent agent
COPY picket picket
RUN /opt/uv/bin/uv sync --locked --no-default-groups --extra agent --no-editable \
    && rm -f /opt/picket/.lock

FROM python
LABEL org.opencontainers.image.title="picket-agent-full" \
      org.opencontainers.image.description="Synthetic monitoring from inside private networks: the full agent." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium-headless-shell \
    && rm -rf /var/lib/apt/lists/*
# A number, so that an orchestrator can tell that it is not root. The kernel shows nobody the memory and
# environment of a program that its user cannot read: tini, and whatever else is given the agent's key.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin picket \
    && install --directory --owner=10001 --group=10001 --mode=0711 /var/lib/picket \
    && chmod 0711 /usr/bin/tini "$(readlink --canonicalize /usr/bin/python3)"
COPY --from=runtimes /opt/picket/runtimes /opt/picket/runtimes
COPY --from=build /opt/picket /opt/picket
COPY deploy/alive.py /opt/picket/deploy/
ENV PATH=/opt/picket/bin:$PATH
# With the browser that there is only here.
RUN python -I -m runners.kit.playwright.warming >/dev/null
USER 10001:10001
EXPOSE 8081 8082
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "-IS", "/opt/picket/deploy/alive.py", "AGENT_HEALTH_PORT", "8081", "/-/liveness"]
# tini: the first process of a container ignores a SIGTERM that comes before it has a handler.
ENTRYPOINT ["tini", "--", "python", "-I", "-m", "agent"]
