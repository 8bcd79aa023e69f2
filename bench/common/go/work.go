// SPDX-License-Identifier: MIT

package peer

// Compute takes a number of steps, each of which needs the one before; see bench/common/work.hpp.
//
//go:noinline
func Compute(steps int, x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// StepsPerNs counts out what Compute does in a nanosecond.
func StepsPerNs() float64 {
	const steps = 20_000
	best := int64(1) << 62
	for i := 0; i < 200; i++ {
		begin := NowNs()
		Compute(steps, uint64(begin))
		if ns := NowNs() - begin; ns < best {
			best = ns
		}
	}
	return steps / float64(best)
}
