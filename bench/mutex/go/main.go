// SPDX-License-Identifier: MIT

// mutex: sync.Mutex. The workload is that of bench/mutex/contest.hpp.
package main

import (
	"runtime"
	"sync"

	peer "libums/bench/common/go"
)

const (
	opsPerLook  = 128
	opsPerYield = 16
)

type contest struct {
	inside, outside int
	yields          bool
	minNs           int64

	// Guarded by the lock that is measured:
	lock               sync.Mutex
	ops                int64
	warm, begin, end   int64
	isOver, isCounting bool
}

func (c *contest) look() {
	now := peer.NowNs()
	switch {
	case c.warm == 0:
		c.warm = now + c.minNs/4
	case !c.isCounting:
		if now >= c.warm {
			c.begin, c.ops, c.isCounting = now, 0, true
		}
	case now >= c.begin+c.minNs:
		c.end, c.isOver = now, true
	}
}

// takePart returns how often the caller had the lock.
func (c *contest) takePart() int64 {
	x := uint64(0)
	for mine := int64(0); ; mine++ {
		c.lock.Lock()
		if c.isOver {
			c.lock.Unlock()
			return mine
		}
		c.ops++
		if c.ops%opsPerLook == 0 {
			c.look()
		}
		x = peer.Compute(c.inside, x)
		if c.yields && c.ops%opsPerYield == 0 {
			runtime.Gosched()
		}
		c.lock.Unlock()
		x = peer.Compute(c.outside, x)
	}
}

func sharers(shares []int64) float64 {
	sum, squares := 0.0, 0.0
	for _, one := range shares {
		sum += float64(one)
		squares += float64(one) * float64(one)
	}
	return sum * sum / squares
}

func lockAndUnlock() peer.Tally {
	const ops = 100_000
	var lock sync.Mutex
	begin := peer.NowNs()
	for i := 0; i < ops; i++ {
		lock.Lock()
		lock.Unlock() //lint:ignore SA2001 an empty section is what is measured
	}
	return peer.Tally{Ops: ops, Ns: peer.NowNs() - begin}
}

func main() {
	in := peer.Arguments()
	way := in.Word("way", "uncontended", "contended", "contended_yield")
	in.Number("processors", 1, 1, 1024)
	fallback := 10
	if way == "uncontended" {
		fallback = 1
	}
	goroutines := in.Number("fibers", fallback, 1, peer.Most)
	sectionNs := in.Number("section_ns", 0, 0, peer.Most)
	minMs := in.Number("min_ms", 100, 1, peer.Most)
	in.Done()

	var out peer.Line
	if way == "uncontended" {
		if goroutines != 1 || sectionNs != 0 {
			peer.Fail("uncontended is one fiber and an empty section")
		}
		out.Tally(peer.Repeat(minMs, lockAndUnlock)).Add("sharers", 1).Print()
		return
	}
	perNs := peer.StepsPerNs()
	all := contest{
		inside:  int(float64(sectionNs)*perNs + 0.5),
		outside: int(float64(sectionNs/4)*perNs + 0.5),
		yields:  way == "contended_yield",
		minNs:   int64(minMs) * 1_000_000,
	}
	shares := make([]int64, goroutines)
	peer.RunCrew(goroutines, func(i int) { shares[i] = all.takePart() })
	out.Tally(peer.Tally{Ops: all.ops, Ns: all.end - all.begin}).Add("sharers", sharers(shares)).Print()
}
