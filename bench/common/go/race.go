// SPDX-License-Identifier: MIT

package peer

import (
	"runtime"
	"sync/atomic"
)

// Race is a common start and finish for N runners; see bench/common/race.hpp.
type Race struct {
	runners    int64
	begin, end int64
	arrived    int64
	left       int64
	open       uint32
}

// NewRace prepares a race.
func NewRace(runners int) *Race {
	return &Race{runners: int64(runners), left: int64(runners)}
}

// Start waits, yielding, until the race is open.
func (r *Race) Start() {
	atomic.AddInt64(&r.arrived, 1)
	for atomic.LoadUint32(&r.open) == 0 {
		runtime.Gosched()
	}
}

// Finish stops the clock if the caller is the last.
func (r *Race) Finish() {
	if atomic.AddInt64(&r.left, -1) == 0 {
		r.end = NowNs()
	}
}

// Open waits until all runners are at the start and starts the clock.
func (r *Race) Open() {
	for atomic.LoadInt64(&r.arrived) != r.runners {
		runtime.Gosched()
	}
	r.begin = NowNs()
	atomic.StoreUint32(&r.open, 1)
}

// Ns is the time from Open to the last Finish.
func (r *Race) Ns() int64 { return r.end - r.begin }
