# A container environment for the CPU: a base image, and the very files of the virtual environment that
# stackrace made and probed on the host. Nothing is downloaded here: the build has no network.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}

# First, so that an interrupted build is known as stackrace's own too.
ARG OWNER
ARG ENVIRONMENT
ARG LOCK
ARG BASE
ARG PYTHON
ARG FORMAT
LABEL stackrace="image" \
      stackrace.owner="${OWNER}" \
      stackrace.environment="${ENVIRONMENT}" \
      stackrace.lock="${LOCK}" \
      stackrace.base="${BASE}" \
      stackrace.python="${PYTHON}" \
      stackrace.format="${FORMAT}"

# A base may send Python elsewhere; empty means unset.
ENV PYTHONPATH="" PYTHONHOME=""

# A portable interpreter, where the base's own is another version; else an empty folder.
COPY python/ /opt/stackrace/python/
COPY env/ /opt/stackrace/env/
