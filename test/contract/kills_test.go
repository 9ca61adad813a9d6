// SPDX-License-Identifier: Apache-2.0

//go:build !long

package contract

// The first kill of a pool meets a scale-out, the next ones either. 60 in all.
const (
	killedPools  = 20
	killsPerPool = 3
)
