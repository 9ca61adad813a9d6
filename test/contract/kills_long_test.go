// SPDX-License-Identifier: Apache-2.0

//go:build long

package contract

// The long run: 200 in all.
const (
	killedPools  = 50
	killsPerPool = 4
)
