// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"math/rand"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	sharedproto "github.com/hashicorp/nomad-autoscaler/plugins/shared/proto/v1"
	targetproto "github.com/hashicorp/nomad-autoscaler/plugins/target/proto/v1"
)

// Sends bytes without encoding.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (rawCodec) Name() string                       { return "proto" }

var unaryMethods = []string{
	"/hashicorp.nomad_autoscaler.plugins.base.proto.v1.BasePluginService/PluginInfo",
	"/hashicorp.nomad_autoscaler.plugins.base.proto.v1.BasePluginService/SetConfig",
	"/hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService/Status",
	"/hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService/Scale",
	"/grpc.health.v1.Health/Check",
	"/no.such.Service/Method",
}

var streamMethods = []string{
	"/plugin.GRPCStdio/StreamStdio",
	"/plugin.GRPCBroker/StartStream",
	"/grpc.health.v1.Health/Watch",
}

func garbage() [][]byte {
	random := rand.New(rand.NewSource(1))
	result := [][]byte{nil, {0}, {0xff}, []byte("\x0a\xff\xff\xff\xff\x0f"), []byte(strings.Repeat("\x0a", 1000))}
	for size := range 40 {
		data := make([]byte, size*size)
		random.Read(data)
		result = append(result, data)
	}
	// Well-formed except for one byte.
	request := &targetproto.ScaleRequest{
		Action: &sharedproto.ScalingAction{Count: 1, Direction: 3, Meta: &anypb.Any{Value: []byte(`{"a":1}`)}},
		Config: map[string]string{"key": "value"},
	}
	valid, _ := proto.Marshal(request)
	for i := range valid {
		broken := append([]byte(nil), valid...)
		broken[i] ^= byte(1 + random.Intn(255))
		result = append(result, broken, valid[:i])
	}
	return result
}

func TestP2GarbageInAnyCallHarmsNothing(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		h := launch(t, binary)
		for _, method := range unaryMethods {
			for _, data := range garbage() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				var reply []byte
				err := h.conn().Invoke(ctx, method, &data, &reply, grpc.ForceCodec(rawCodec{}))
				cancel()
				if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
					t.Fatalf("%s %q: %v", method, data, err)
				}
			}
		}
		for _, method := range streamMethods {
			for _, data := range garbage() {
				ctx, cancel := context.WithCancel(context.Background())
				stream, err := h.conn().NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
					method, grpc.ForceCodec(rawCodec{}))
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				_ = stream.SendMsg(&data)
				_ = stream.CloseSend()
				cancel()
			}
		}
		if _, err := h.target.PluginInfo(); err != nil {
			t.Fatalf("afterwards: %v", err)
		}
		h.client.Kill()
		h.checkEndedInOrder()
	})
}

func TestP2BytesThatAreNoHttp2HarmNothing(t *testing.T) {
	h := launch(t, fakePlugin)
	for i, data := range garbage() {
		conn := must1(net.Dial("unix", h.client.ReattachConfig().Addr.String()))(t)
		if i%2 == 0 {
			data = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), data...)
		}
		_, _ = conn.Write(data)
		conn.Close()
	}
	h.status(nil)
}

func TestMessagesThatAreTooLargeAreRefused(t *testing.T) {
	h := launch(t, fakePlugin)
	_, err := h.target.Status(map[string]string{"large": strings.Repeat("x", 8<<20)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("error %v", err)
	}
	h.status(nil)
}

// As the autoscaler's own server does: hashicorp/nomad-autoscaler:plugins/shared/util.go,
// ProtoToScalingAction.
func TestActionsAreJudgedAsByTheAutoscalersOwnServer(t *testing.T) {
	h := launch(t, fakePlugin)
	client := targetproto.NewTargetPluginServiceClient(h.conn())
	for name, test := range map[string]struct {
		action *sharedproto.ScalingAction
		want   codes.Code
	}{
		"absent action":         {nil, codes.OK},
		"direction unspecified": {&sharedproto.ScalingAction{Count: 1}, codes.InvalidArgument},
		"direction unknown":     {&sharedproto.ScalingAction{Count: 1, Direction: 99}, codes.InvalidArgument},
		"meta not JSON":         {withMeta("{"), codes.InvalidArgument},
		"meta empty":            {withMeta(""), codes.InvalidArgument},
		"meta no object":        {withMeta("[1]"), codes.InvalidArgument},
		"meta too deep":         {withMeta(strings.Repeat("[", 100_000)), codes.InvalidArgument},
		"meta null":             {withMeta("null"), codes.OK},
		"meta object":           {withMeta("{}"), codes.OK},
	} {
		before := h.status(nil).Count
		_, err := client.Scale(context.Background(), &targetproto.ScaleRequest{Action: test.action})
		if status.Code(err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
		if began := h.status(nil).Count > before; began != (test.want == codes.OK) {
			t.Errorf("%s: the service was called: %v", name, began)
		}
	}
}

func withMeta(json string) *sharedproto.ScalingAction {
	return &sharedproto.ScalingAction{Count: 1, Direction: 3, Meta: &anypb.Any{Value: []byte(json)}}
}

func TestAnyNumberOfStreamsAndConnectionsMayBeOpenAtTheEnd(t *testing.T) {
	h := launch(t, fakePlugin)
	for i := range 50 {
		for _, method := range streamMethods {
			stream, err := h.conn().NewStream(context.Background(),
				&grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(rawCodec{}))
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				_ = stream.SendMsg(&[]byte{})
			}
		}
	}
	h.client.Kill()
	h.checkEndedInOrder()
}
