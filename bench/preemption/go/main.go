// SPDX-License-Identifier: MIT

// preemption: goroutines in endless loops beside others that sleep; see bench/preemption/loops.hpp.
package main

import (
	"sync"
	"sync/atomic"
	"time"

	peer "libums/bench/common/go"
)

const sleepers = 4

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	loops := in.Number("fibers", 1, 1, 10_000)
	ms := in.Number("ms", 2000, 1, 600_000)
	in.Done()

	var over atomic.Bool
	var turns atomic.Uint64
	var late [sleepers][]int64
	var all sync.WaitGroup
	all.Add(sleepers + loops)
	begun := peer.NowNs()
	time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { over.Store(true) })
	for i := 0; i < sleepers; i++ {
		go func(i int) {
			for n := 0; !over.Load(); n++ {
				length := 500_000 + peer.SleepNs(uint64(n*sleepers+i), 1_000_000)
				due := peer.NowNs() + length
				time.Sleep(time.Duration(length))
				late[i] = append(late[i], peer.NowNs()-due)
			}
			all.Done()
		}(i)
	}
	for i := 0; i < loops; i++ {
		go func() {
			mine := uint64(0)
			for !over.Load() {
				mine++
			}
			turns.Add(mine)
			all.Done()
		}()
	}
	all.Wait()
	ns := peer.NowNs() - begun

	var together []int64
	for i := range late {
		together = append(together, late[i]...)
	}
	var out peer.Line
	out.Add("turns_per_us", float64(turns.Load())*1000/float64(ns))
	out.AddLateness(together).Print()
}
