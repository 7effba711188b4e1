# A container environment for the GPU: as cpu.Dockerfile, and what NVIDIA's runtime and the CUDA
# libraries of the environment need. The base has a CUDA of its own where none comes from wheels.
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

# No GPU unless a job is given one: where NVIDIA's is the default runtime, it would give all.
ENV NVIDIA_VISIBLE_DEVICES="void" NVIDIA_DRIVER_CAPABILITIES="compute,utility"
# Folders of CUDA wheels inside the environment, before what the base has.
ARG LIBRARY_PATH
# No colon at an end: an empty name would be the folder that the job writes to.
ENV LD_LIBRARY_PATH="${LIBRARY_PATH}${LIBRARY_PATH:+${LD_LIBRARY_PATH:+:}}${LD_LIBRARY_PATH}"

# A portable interpreter, where the base's own is another version; else an empty folder.
COPY python/ /opt/stackrace/python/
COPY env/ /opt/stackrace/env/
