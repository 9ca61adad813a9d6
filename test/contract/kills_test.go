// SPDX-License-Identifier: Apache-2.0

//go:build !long

package contract

// The first kill of a pool happens in a scale-out, the next ones in either direction. 60 in total.
const (
	killedPools  = 20
	killsPerPool = 3
)
