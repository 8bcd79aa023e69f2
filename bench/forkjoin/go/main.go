// SPDX-License-Identifier: MIT

// forkjoin: goroutines and wait groups; the programs are those of bench/forkjoin/programs.hpp.
package main

import (
	"math/bits"
	"sync"
	"sync/atomic"

	peer "libums/bench/common/go"
)

// The most goroutines at once, counted only if the cell asks for it.
var (
	isCounting bool
	now, most  atomic.Int64
)

func made() {
	if !isCounting {
		return
	}
	is := now.Add(1)
	for was := most.Load(); was < is && !most.CompareAndSwap(was, is); was = most.Load() {
	}
}

func freed() {
	if isCounting {
		now.Add(-1)
	}
}

// sum adds up value(0) to value(n-1). Each but the last has a goroutine.
func sum(n int, value func(int) uint64) uint64 {
	var all sync.WaitGroup
	results := make([]uint64, n)
	all.Add(n - 1)
	for i := 0; i < n-1; i++ {
		made()
		go func(i int) {
			results[i] = value(i)
			freed()
			all.Done()
		}(i)
	}
	results[n-1] = value(n - 1)
	all.Wait()
	var total uint64
	for _, one := range results {
		total += one
	}
	return total
}

// What is no larger than the cut-off has loops of its own, because a function that sum gets, and what that uses of
// its caller, are allocated.

func fib(n, cutOff int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	if n <= cutOff {
		return fib(n-1, cutOff) + fib(n-2, cutOff)
	}
	return sum(2, func(i int) uint64 { return fib(n-1-i, cutOff) })
}

func skynet(first, leaves, cutOff int) uint64 {
	if leaves == 1 {
		return uint64(first)
	}
	share := leaves / 10
	if leaves <= cutOff {
		var total uint64
		for i := 0; i < 10; i++ {
			total += skynet(first+i*share, share, cutOff)
		}
		return total
	}
	return sum(10, func(i int) uint64 { return skynet(first+i*share, share, cutOff) })
}

var solutions = [...]uint64{1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512}

type queens struct {
	columns, left, right uint32
}

func (p queens) free(n int) uint32 { return (uint32(1)<<n - 1) &^ (p.columns | p.left | p.right) }

// with has a queen more, in the first free column.
func (p queens) with(free uint32) queens {
	queen := uint32(1) << bits.TrailingZeros32(free)
	return queens{p.columns | queen, (p.left | queen) << 1, (p.right | queen) >> 1}
}

func nqueens(placed queens, n, rows, cutOff int) uint64 {
	if rows == 0 {
		return 1
	}
	free := placed.free(n)
	if rows <= cutOff {
		var total uint64
		for ; free != 0; free &= free - 1 {
			total += nqueens(placed.with(free), n, rows-1, cutOff)
		}
		return total
	}
	if free == 0 {
		return 0
	}
	next := make([]queens, 0, 16)
	for ; free != 0; free &= free - 1 {
		next = append(next, placed.with(free))
	}
	return sum(len(next), func(i int) uint64 { return nqueens(next[i], n, rows-1, cutOff) })
}

const tile = 32

func matmul(a, b, c []uint32, stride, edge, cutOff int) uint64 {
	if edge <= tile {
		for i := 0; i < tile; i++ {
			to := c[i*stride:][:tile]
			for k := 0; k < tile; k++ {
				factor := a[i*stride+k]
				for j, from := range b[k*stride:][:tile] {
					to[j] += factor * from
				}
			}
		}
		return 1
	}
	half := edge / 2
	var tiles uint64
	for k := 0; k < edge; k += half {
		quarter := func(i int) uint64 {
			row, column := i/2*half*stride, i%2*half
			return matmul(a[row+k:], b[k*stride+column:], c[row+column:], stride, half, cutOff)
		}
		if edge <= cutOff {
			tiles += quarter(0) + quarter(1) + quarter(2) + quarter(3)
		} else {
			tiles += sum(4, quarter)
		}
	}
	return tiles
}

func times(matrix, x []uint32) []uint32 {
	y := make([]uint32, len(x))
	for i := range y {
		for j, by := range x {
			y[i] += matrix[i*len(x)+j] * by
		}
	}
	return y
}

const (
	utsRoot      = 7
	mostChildren = 32
)

var nodesOf = [...]uint64{
	1, 5, 12, 32, 82, 167, 360, 776, 1661, 2844, 5347, 11474, 24016, 46890, 92363, 179249, 338243, 688083, 1344258,
	2528521, 5047143,
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func uts(node uint64, levels, depth, cutOff int) uint64 {
	chance := uint64(4*levels) << 32 / uint64(4*levels+depth)
	n := 0
	for draw := mix(^node); n < mostChildren && draw>>32 < chance; draw = mix(draw) {
		n++
	}
	if n == 0 {
		return 1
	}
	if levels <= cutOff {
		total := uint64(1)
		for i := 0; i < n; i++ {
			total += uts(mix(node+uint64(i)), levels-1, depth, cutOff)
		}
		return total
	}
	return 1 + sum(n, func(i int) uint64 { return uts(mix(node+uint64(i)), levels-1, depth, cutOff) })
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024) // GOMAXPROCS says it.
	program := in.Word("program", "fib", "skynet", "nqueens", "matmul", "uts")
	size := in.Number("size", 20, 1, peer.Most)
	cutOff := in.Number("cut_off", 0, 0, peer.Most)
	minMs := in.Number("min_ms", 1, 0, 60_000)
	isCounting = in.Number("count", 0, 0, 1) == 1
	in.Done()

	// The answer, the right one, and the operations, each as in programs.hpp.
	var walk func() uint64
	var expected, ops uint64
	isRight := func() bool { return true }
	clearAll := func() {}
	switch program {
	case "fib":
		next := uint64(1)
		for i := 0; i < size; i++ {
			expected, next = next, expected+next
		}
		ops = 2*next - 1
		walk = func() uint64 { return fib(size, cutOff) }
	case "skynet":
		expected, ops = uint64(size*(size-1)/2), uint64(size)
		walk = func() uint64 { return skynet(0, size, cutOff) }
	case "nqueens":
		expected = solutions[size]
		ops = expected
		walk = func() uint64 { return nqueens(queens{}, size, size, cutOff) }
	case "matmul":
		a, b, c := make([]uint32, size*size), make([]uint32, size*size), make([]uint32, size*size)
		x := make([]uint32, size)
		for i := range a {
			a[i] = uint32(i) * 2654435761 >> 7
			b[i] = uint32(i) * 2246822519 >> 5
		}
		for i := range x {
			x[i] = uint32(i*i + 1)
		}
		expected = uint64(size / tile * (size / tile) * (size / tile))
		ops = expected
		clearAll = func() {
			for i := range c {
				c[i] = 0
			}
		}
		walk = func() uint64 { return matmul(a, b, c, size, size, cutOff) }
		isRight = func() bool {
			ours, right := times(c, x), times(a, times(b, x))
			for i := range ours {
				if ours[i] != right[i] {
					return false
				}
			}
			return true
		}
	case "uts":
		expected = nodesOf[size]
		ops = expected
		walk = func() uint64 { return uts(utsRoot, size, size, cutOff) }
	}

	before := peer.StatusBytes("VmRSS")
	var walks, cpu int64
	sum := peer.Repeat(minMs, func() peer.Tally {
		clearAll()
		cpuBefore, begin := peer.CPUNs(), peer.NowNs()
		answer := walk()
		ns := peer.NowNs() - begin
		cpu += peer.CPUNs() - cpuBefore
		walks++
		if answer != expected || !isRight() {
			peer.Fail("wrong result %d", answer)
		}
		return peer.Tally{Ops: int64(ops), Ns: ns}
	})
	var out peer.Line
	out.Tally(sum).Add("total_ns", sum.Ns/walks).Add("cpu_ns", cpu/walks)
	if isCounting {
		out.Add("stacks", most.Load()+1) // And main's.
	}
	out.Add("peak_above_start_bytes", peer.StatusBytes("VmHWM")-before).Print()
}
