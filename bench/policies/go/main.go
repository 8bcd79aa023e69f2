// SPDX-License-Identifier: MIT

// policies: goroutines. The workload is that of bench/policies/shapes.hpp and probe.hpp. A goroutine waits for its
// signal at a channel with one place.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	peer "libums/bench/common/go"
)

const ringSize = 5

type probe struct {
	stop  int32
	waits []int64
	ended sync.WaitGroup
}

func startProbe() *probe {
	p := &probe{}
	p.ended.Add(1)
	go func() {
		defer p.ended.Done()
		for {
			at := peer.NowNs() + 100_000 + peer.SleepNs(uint64(len(p.waits)), 100_000)
			time.Sleep(time.Duration(at - peer.NowNs()))
			p.waits = append(p.waits, peer.NowNs()-at)
			if atomic.LoadInt32(&p.stop) != 0 {
				return
			}
		}
	}()
	return p
}

func (p *probe) end() {
	atomic.StoreInt32(&p.stop, 1)
	p.ended.Wait()
}

type signal chan struct{}

func (s signal) send() { s <- struct{}{} }
func (s signal) wait() { <-s }

type shapes struct {
	fibers     int
	lengthNs   int64
	endNs      int64
	stop       int32
	stepsPerNs float64
}

func (s *shapes) isOver(done int64) bool {
	if done%16 == 0 {
		now := peer.NowNs()
		if end := atomic.LoadInt64(&s.endNs); end == 0 {
			atomic.CompareAndSwapInt64(&s.endNs, 0, now+s.lengthNs)
		} else if now >= end {
			atomic.StoreInt32(&s.stop, 1)
		}
	}
	return atomic.LoadInt32(&s.stop) != 0
}

func (s *shapes) steps(ns float64) int { return int(ns*s.stepsPerNs + 0.5) }

func (s *shapes) runAll(work func(i int) int64) peer.Tally {
	var ops int64
	ns := peer.RunCrew(s.fibers, func(i int) { atomic.AddInt64(&ops, work(i)) })
	return peer.Tally{Ops: ops, Ns: ns}
}

func (s *shapes) loop(step func(i int, done int64)) peer.Tally {
	return s.runAll(func(i int) int64 {
		done := int64(0)
		for !s.isOver(done) {
			step(i, done)
			done++
		}
		return done
	})
}

func (s *shapes) signals() []signal {
	made := make([]signal, s.fibers)
	for i := range made {
		made[i] = make(signal, 1)
	}
	return made
}

func (s *shapes) cycle() peer.Tally {
	turns := s.signals()
	for i := 0; i < s.fibers; i += ringSize {
		turns[i].send()
	}
	return s.runAll(func(i int) int64 {
		next := i + 1
		if next%ringSize == 0 {
			next -= ringSize
		}
		for done := int64(0); ; {
			turns[i].wait()
			isLast := s.isOver(done)
			done++
			turns[next].send()
			if isLast {
				return done
			}
		}
	})
}

func (s *shapes) churn(words int) peer.Tally {
	turns := s.signals()
	spots := make([]int64, s.fibers/2) // The waiter and 1, or 0.
	data := make([][2048]uint64, s.fibers)
	wake := func(waiter int64) {
		if waiter != 0 {
			turns[waiter-1].send()
		}
	}
	waitAt := func(spot *int64, i int) {
		self := int64(i + 1)
		wake(atomic.SwapInt64(spot, self))
		if atomic.LoadInt32(&s.stop) == 0 || !atomic.CompareAndSwapInt64(spot, self, 0) {
			turns[i].wait()
		}
	}
	return s.runAll(func(i int) int64 {
		random, done := peer.Scramble(uint64(i)), int64(0)
		if i < len(spots) {
			waitAt(&spots[i], i)
		}
		for !s.isOver(done) {
			for n := 0; n < words; n++ {
				random = peer.Compute(1, random)
				data[i][random>>53]++
			}
			random = peer.Compute(1, random)
			waitAt(&spots[int(random>>33)%len(spots)], i)
			done++
		}
		for n := range spots {
			wake(atomic.SwapInt64(&spots[n], 0))
		}
		return done
	})
}

func (s *shapes) transfer() peer.Tally {
	turns := s.signals()
	var waiting, leader int64
	turns[0].send()
	return s.runAll(func(i int) int64 {
		random := peer.Scramble(uint64(i))
		for done := int64(0); ; {
			turns[i].wait()
			if atomic.LoadInt64(&leader) != int64(i) {
				// Asked before the leader can go on: the next one may be the last.
				isLast := atomic.LoadInt32(&s.stop) != 0
				atomic.AddInt64(&waiting, -1)
				if isLast {
					return done
				}
				continue
			}
			atomic.StoreInt64(&waiting, int64(s.fibers-1))
			isLast := s.isOver(0)
			done++
			for other := range turns {
				if other != i {
					turns[other].send()
				}
			}
			for atomic.LoadInt64(&waiting) != 0 {
				peer.Compute(10, random)
			}
			if isLast {
				return done
			}
			random = peer.Compute(1, random)
			next := int(random>>33) % s.fibers
			atomic.StoreInt64(&leader, int64(next))
			turns[next].send()
		}
	})
}

func (s *shapes) locks() peer.Tally {
	all := make([]sync.Mutex, s.fibers/8+1)
	outside, inside := s.steps(500), s.steps(100)
	return s.loop(func(i int, done int64) {
		x := peer.Compute(outside, uint64(done))
		all[i/8].Lock()
		peer.Compute(inside, x)
		if done%16 == 15 {
			runtime.Gosched()
		}
		all[i/8].Unlock()
	})
}

func (s *shapes) run(way string) peer.Tally {
	switch way {
	case "cycle":
		return s.cycle()
	case "yield":
		return s.loop(func(int, int64) { runtime.Gosched() })
	case "churn":
		return s.churn(0)
	case "locality":
		return s.churn(64)
	case "transfer":
		return s.transfer()
	case "locks":
		return s.locks()
	}
	steps := s.steps(10_000)
	return s.loop(func(_ int, done int64) {
		peer.Compute(steps, uint64(done))
		runtime.Gosched()
	})
}

func main() {
	in := peer.Arguments()
	processors := in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 100, 1, peer.Most)
	minMs := in.Number("min_ms", 500, 1, peer.Most)
	way := in.Word("way", "load", "cycle", "yield", "churn", "locality", "transfer", "locks")
	in.Done()
	if goroutines%(2*ringSize) != 0 {
		peer.Fail("rings of five and halves take a multiple of ten goroutines")
	}
	if way == "transfer" && processors < 2 {
		peer.Fail("transfer takes two processors: the leader computes")
	}

	all := shapes{fibers: goroutines, lengthNs: int64(minMs) * 1_000_000, stepsPerNs: peer.StepsPerNs()}
	urgent := startProbe()
	sum := all.run(way)
	urgent.end()
	var out peer.Line
	out.Tally(sum).AddQuantileUs("wake_p50_us", urgent.waits, 0.5).AddQuantileUs("wake_p99_us", urgent.waits, 0.99).Print()
}
