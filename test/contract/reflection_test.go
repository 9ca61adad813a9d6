// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"slices"
	"testing"

	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

// As grpcurl does: it lists the services, and then asks for each.
func TestReflectionOfDevDescribesEveryService(t *testing.T) {
	address, _, stop := startDev(t, []string{"TMPDIR=" + t.TempDir()}, "--simulate")
	stream := must1(reflection.NewServerReflectionClient(dialDev(t, address)).ServerReflectionInfo(context.Background()))(t)
	ask := func(request *reflection.ServerReflectionRequest) *reflection.ServerReflectionResponse {
		must(t, stream.Send(request))
		reply := must1(stream.Recv())(t)
		return reply
	}
	var got []string
	for _, service := range ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		got = append(got, service.GetName())
	}
	for _, name := range []string{
		"hashicorp.nomad_autoscaler.plugins.base.proto.v1.BasePluginService",
		"hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService",
	} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not listed: %v", name, got)
		}
		reply := ask(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}})
		if len(reply.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("%s: %v", name, reply)
		}
	}
	stream.CloseSend()
	stop()
}
