// SPDX-License-Identifier: Apache-2.0
// The parts of gRPC that the static executable has, which serves and never calls. The library's own
// list (grpc/grpc:src/core/plugin_registry/grpc_plugin_registry.cc, 1.51) also registers those of
// clients: load balancers, resolvers, proxies, half a megabyte, each of which a start touches. The
// linker takes this definition instead. None of these names is in gRPC's headers: a version that
// lacks one does not link.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

}  // namespace grpc_core

namespace grpc_event_engine::experimental {
void RegisterEventEngineChannelArgPreconditioning(grpc_core::CoreConfiguration::Builder* builder);
}  // namespace grpc_event_engine::experimental

namespace grpc_core {

void SecurityRegisterHandshakerFactories(CoreConfiguration::Builder* builder);
void RegisterHttpFilters(CoreConfiguration::Builder* builder);
void RegisterDeadlineFilter(CoreConfiguration::Builder* builder);
void RegisterMessageSizeFilter(CoreConfiguration::Builder* builder);
void RegisterResourceQuota(CoreConfiguration::Builder* builder);
void RegisterSecurityFilters(CoreConfiguration::Builder* builder);
void RegisterBuiltins(CoreConfiguration::Builder* builder);

void BuildCoreConfiguration(CoreConfiguration::Builder* builder);

// In the order of the library's list.
void BuildCoreConfiguration(CoreConfiguration::Builder* builder) {
  grpc_event_engine::experimental::RegisterEventEngineChannelArgPreconditioning(builder);
  SecurityRegisterHandshakerFactories(builder);
  RegisterHttpFilters(builder);
  RegisterDeadlineFilter(builder);
  RegisterMessageSizeFilter(builder);
  RegisterResourceQuota(builder);
  RegisterSecurityFilters(builder);
  RegisterBuiltins(builder);
}

}  // namespace grpc_core
