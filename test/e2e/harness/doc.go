// SPDX-License-Identifier: Apache-2.0

// Package harness starts the plugin's environment from real parts: etcd and Kubernetes' API server,
// scheduler and controllers, KubeVirt's and Harvester's own programs, Nomad servers, the Nomad
// Autoscaler's agent, and for every virtual machine a real Nomad client in its own UTS, PID and mount
// namespace. What the programs would find on a host is played (players.go).
//
// Everything listens on loopback addresses. A test's own processes end with it, those of a cluster with
// the run; all of them end if the test process is killed.
package harness
