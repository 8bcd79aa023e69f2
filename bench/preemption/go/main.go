// SPDX-License-Identifier: MIT

// preemption: goroutines in endless loops beside others that sleep; see bench/preemption/loops.hpp.
package main

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"

	peer "libums/bench/common/go"
)

const sleepers = 4

// As bench/common/lateness.hpp, so that all runtimes sleep the same times.
func sleepNs(index, longest uint64) int64 {
	z := (index + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return int64((z ^ (z >> 31)) % (longest + 1))
}

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
				length := 500_000 + sleepNs(uint64(n*sleepers+i), 1_000_000)
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
	sort.Slice(together, func(a, b int) bool { return together[a] < together[b] })
	at := func(share float64) float64 {
		return float64(together[int(share*float64(len(together)-1))]) / 1000
	}
	var out peer.Line
	out.Add("turns_per_us", float64(turns.Load())*1000/float64(ns))
	out.Add("lateness_p50_us", at(0.5)).Add("lateness_p99_us", at(0.99)).Add("lateness_max_us", at(1)).Print()
}
