// SPDX-License-Identifier: MIT

// yield: N goroutines, each yields M times. With measure=cycles, the cycles of each single switch.
package main

import (
	"runtime"
	"sync"

	peer "libums/bench/common/go"
)

func lap(goroutines, yields int, step func()) peer.Tally {
	race := peer.NewRace(goroutines)
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			defer all.Done()
			race.Start()
			if step == nil {
				for y := 0; y < yields; y++ {
					runtime.Gosched()
				}
			} else {
				for y := 0; y < yields; y++ {
					step()
				}
			}
			race.Finish()
		}()
	}
	race.Open()
	all.Wait()
	return peer.Tally{Ops: int64(goroutines) * int64(yields), Ns: race.Ns()}
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 10, 1, peer.Most)
	yields := in.Number("yields", 1000, 1, peer.Most)
	minMs := in.Number("min_ms", 30, 0, peer.Most)
	countCycles := in.Word("measure", "time", "cycles") == "cycles"
	in.Done()

	var out peer.Line
	if !countCycles {
		out.Tally(peer.Repeat(minMs, func() peer.Tally { return lap(goroutines, yields, nil) })).Print()
		return
	}
	// As bench/common/switch_clock.hpp: one CPU, so plain counters will do.
	var begin, switches, reads, count int64
	sum := lap(goroutines, yields, func() {
		begin = peer.Cycles()
		runtime.Gosched()
		switches += peer.Cycles() - begin
		first := peer.Cycles()
		reads += peer.Cycles() - first
		count++
	})
	out.Tally(sum).Add("cycles_per_op", float64(switches-reads)/float64(count)).Print()
}
