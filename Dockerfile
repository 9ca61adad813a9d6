# SPDX-License-Identifier: Apache-2.0
# The plugin as one static executable in an image without anything else. Copy /harvester into the
# agent's plugin directory, or mount this image's content there.
FROM debian:bookworm-slim AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates binutils
COPY . /source
WORKDIR /source
# scripts/image puts a static executable that was built before into the context; a plain
# "docker build" compiles it here.
RUN if [ ! -x build/static/harvester ]; then scripts/build static harvester; fi \
 && strip build/static/harvester \
 && install -D build/static/harvester /image/harvester \
 && ln -s harvester /image/nomad-harvester \
 && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

FROM scratch
LABEL org.opencontainers.image.title="nomad-harvester-autoscaler" \
      org.opencontainers.image.description="Harvester target plugin for the Nomad Autoscaler"
# The driver, and the command, which is a link to it.
COPY --from=build /image/ /
ENTRYPOINT ["/nomad-harvester"]
