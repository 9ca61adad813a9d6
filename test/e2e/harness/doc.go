// SPDX-License-Identifier: Apache-2.0

// Package harness starts the plugin's environment from real parts: etcd and the
// Kubernetes API server with KubeVirt's own definitions, a Nomad server, the
// Nomad Autoscaler's agent, and for every virtual machine a real Nomad client in
// its own UTS, PID and mount namespace. Harvester's and KubeVirt's own programs run,
// too, and what they would find on a host is played (players.go); where they are not
// started, a small controller acts as both.
//
// Everything listens on loopback addresses. Every process ends with its stack,
// or with the test process if that is killed.
package harness
