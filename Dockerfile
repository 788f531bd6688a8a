# syntax=docker/dockerfile:1
# For builds that can be repeated bit by bit, name the base by its digest:
#   docker build --build-arg NODE_IMAGE=node:22-bookworm-slim@sha256:... -t powgate .
# Not Alpine: uWebSockets.js needs glibc.
ARG NODE_IMAGE=node:22-bookworm-slim

# Build: all dependencies, compile, then keep only what runs.
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json LICENSE ./
COPY scripts ./scripts
COPY src ./src
# Another build of the HTTP server (docs/evidence/binaries.md): --build-arg UWS=v20.69.0, or UWS=npm:NAME@VERSION.
ARG UWS=
RUN npm run build \
  && npm prune --omit=dev \
  && if [ -n "$UWS" ]; then npm_config_omit=dev scripts/use-upstream-server.sh "$UWS" install; fi \
  # The package ships a binary for every platform; one of them runs here.
  && find node_modules/uWebSockets.js/ -name '*.node' \
       ! -name "uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" -delete \
  # Fails here, and not at the first start, where the base's Node.js or C library has no binary.
  && node dist/cli/main.js --version && node -e "import('uWebSockets.js')" \
  # Nobody but root may write what runs, anybody may read it.
  && chmod -R a+rX,go-w /app

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="powgate" \
      org.opencontainers.image.description="Self-hosted proof-of-work human verification" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production POWGATE_DATA_DIR=/data POWGATE_ADMIN_PORT=9090
# Installers of packages for Node.js have no business in what runs.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
  && install -d -o 1000 -g 1000 -m 700 /data
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# A number, so that Kubernetes can see that it is not root.
USER 1000:1000
# The only place that is written to: the rest may be read-only. With Redis nothing is.
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9090/healthz').then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# docker run powgate serve | check | site list | ...
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["serve"]
