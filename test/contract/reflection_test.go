// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"slices"
	"testing"

	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

func TestReflectionListsEveryService(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		stream, err := reflection.NewServerReflectionClient(launch(t, binary).conn()).ServerReflectionInfo(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, service := range reply.GetListServicesResponse().GetService() {
			got = append(got, service.GetName())
		}
		slices.Sort(got)
		want := []string{
			"grpc.health.v1.Health",
			"grpc.reflection.v1alpha.ServerReflection",
			"hashicorp.nomad_autoscaler.plugins.base.proto.v1.BasePluginService",
			"hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService",
			"plugin.GRPCBroker",
			"plugin.GRPCController",
			"plugin.GRPCStdio",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}
