// SPDX-License-Identifier: Apache-2.0

// Package harness brings up the world that the plugin lives in, out of real
// parts: etcd and the Kubernetes API server with KubeVirt's own definitions, a
// Nomad server, the Nomad Autoscaler's agent, and for every virtual machine a
// real Nomad client in a UTS, PID and mount namespace of its own. Only what runs
// virtual machines is played: a small controller stands for KubeVirt and
// Harvester.
//
// Everything listens on loopback addresses. Every process ends with its stack,
// or with the test process if that is killed.
package harness
