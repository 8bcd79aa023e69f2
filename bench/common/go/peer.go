// SPDX-License-Identifier: MIT

// Package peer is bench/common in Go: arguments, clocks, what the process occupies, and the one line of JSON.
package peer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Cell holds the key=value arguments. The first error ends the program with one line on stderr.
type Cell struct {
	given map[string]string
}

// Fail prints one line on stderr and ends the program.
func Fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// Arguments reads the command line. When a key is given twice the later one counts.
func Arguments() *Cell {
	cell := &Cell{given: map[string]string{}}
	for _, word := range os.Args[1:] {
		key, value, found := strings.Cut(word, "=")
		if !found || key == "" {
			Fail("expected key=value, got '%s'", word)
		}
		cell.given[key] = value
	}
	return cell
}

// Number takes a number from the arguments.
func (c *Cell) Number(key string, fallback, lowest, highest int) int {
	text, found := c.given[key]
	if !found {
		return fallback
	}
	delete(c.given, key)
	value, err := strconv.Atoi(text)
	if err != nil || value < lowest || value > highest {
		Fail("%s=%s: expected a number from %d to %d", key, text, lowest, highest)
	}
	return value
}

// Word takes one of words from the arguments, of which the first is the default.
func (c *Cell) Word(key string, words ...string) string {
	text, found := c.given[key]
	if !found {
		return words[0]
	}
	delete(c.given, key)
	for _, one := range words {
		if one == text {
			return text
		}
	}
	Fail("%s=%s: expected one of %s", key, text, strings.Join(words, ", "))
	return ""
}

// Done complains of arguments that nobody asked for.
func (c *Cell) Done() {
	for key := range c.given {
		Fail("unknown argument '%s'", key)
	}
}

// Most is the highest count a peer accepts.
const Most = 1_000_000_000

var start = time.Now()

// NowNs is the monotonic time since the start of the program.
func NowNs() int64 { return int64(time.Since(start)) }

// Tally is a number of operations and the time they took.
type Tally struct {
	Ops, Ns int64
}

// Repeat sums round until minMs were measured.
func Repeat(minMs int, round func() Tally) Tally {
	var sum Tally
	for {
		one := round()
		sum.Ops += one.Ops
		sum.Ns += one.Ns
		if sum.Ns >= int64(minMs)*1_000_000 {
			return sum
		}
	}
}

// Line is the answer.
type Line struct {
	text strings.Builder
}

// Add adds a figure.
func (l *Line) Add(key string, value any) *Line {
	if l.text.Len() > 0 {
		l.text.WriteByte(',')
	}
	fmt.Fprintf(&l.text, "%q:%v", key, value)
	return l
}

// Tally adds ops and ns.
func (l *Line) Tally(sum Tally) *Line { return l.Add("ops", sum.Ops).Add("ns", sum.Ns) }

// Print writes the answer.
func (l *Line) Print() {
	if _, err := fmt.Printf("{%s}\n", l.text.String()); err != nil {
		Fail("cannot write the result to stdout")
	}
}
