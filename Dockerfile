# The full agent: all that the light one runs, and scripted checks, with Node and Chromium.
#
#   docker build -t picket-agent-full .
#   docker build -t picket-agent-full --build-arg RUNTIMES=2026.04 .    # one runtime, not both

# Debian's Python is an optimised build: docs/design/speed.md has the figures.
ARG BASE=debian:13-slim

# hadolint ignore=DL3006
FROM ${BASE} AS python
# No versions: Debian's mirrors keep only the newest security fix of each package. No program keeps
# its set-user-ID or set-group-ID bit: nothing here changes its user that way.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 tini \
    && find / -xdev -perm /6000 -exec chmod a-s {} + \
    && rm -rf /var/lib/apt/lists/*

FROM python AS uv
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils python3-venv \
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
# The libraries first: they stay in the builder's cache when only our code changes. Left out is what
# nothing reads: packages that colour source code, and information for debuggers.
RUN /opt/uv/bin/uv sync --locked --no-default-groups --extra agent --no-install-project \
        --no-install-package markdown-it-py --no-install-package mdurl --no-install-package pygments \
    && find /opt/picket -name '*.so*' -type f -exec strip --strip-debug {} +
COPY LICENSE README.md ./
COPY contract contract
COPY redaction redaction
COPY sandbox sandbox
COPY runners runners
COPY agent agent
COPY picket picket
RUN /opt/uv/bin/uv sync --locked --no-default-groups --extra agent --no-editable \
        --no-install-package markdown-it-py --no-install-package mdurl --no-install-package pygments \
    && /opt/picket/bin/python -I -c 'import agent.__main__' \
    && rm -f /opt/picket/.lock

FROM python
# Without 215 MB of graphics drivers and a compiler for them: Chromium draws by its own software here.
# For this command only: images that begin with this one get the whole of what they install.
# hadolint ignore=DL3008
RUN printf 'path-exclude %s\n' '/usr/lib/*/dri/*' '/usr/lib/*/libLLVM*' '/usr/lib/*/libgallium*' \
        '/usr/lib/*/libz3*' '/usr/lib/chromium/libVkLayer_*' >/etc/dpkg/dpkg.cfg.d/no-graphics \
    && apt-get update \
    && apt-get install --yes --no-install-recommends chromium-headless-shell \
    && find / -xdev -perm /6000 -exec chmod a-s {} + \
    && rm /etc/dpkg/dpkg.cfg.d/no-graphics \
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
RUN python -I -m runners.scripting.playwright.compile_cache >/dev/null
USER 10001:10001
EXPOSE 8081 8082
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "-IS", "/opt/picket/deploy/alive.py", "AGENT_HEALTH_PORT", "8081", "/-/liveness"]
# tini: the first process of a container ignores a SIGTERM that comes before it has a handler.
ENTRYPOINT ["tini", "--", "python", "-I", "-m", "agent"]
# Last, so that a release changes no layer before it.
ARG VERSION=unknown
LABEL org.opencontainers.image.title="picket-agent-full" \
      org.opencontainers.image.description="Synthetic monitoring from inside private networks: the full agent." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
