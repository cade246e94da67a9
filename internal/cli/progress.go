package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// statusLine is a line of a terminal that is written again and again.
type statusLine struct {
	w     io.Writer // nil: not a terminal
	start time.Time
	shown time.Time
}

const progressInterval = 100 * time.Millisecond

func newStatusLine(w io.Writer) *statusLine {
	if _, ok := terminal(w); !ok {
		w = nil
	}

	return &statusLine{w: w, start: time.Now()}
}

// show prints a step and its elapsed time, at most once per progressInterval.
func (l *statusLine) show(text string) {
	if l.w == nil || time.Since(l.shown) < progressInterval {
		return
	}

	l.shown = time.Now()
	fmt.Fprintf(l.w, "\r\x1b[K%s, %s", text, time.Since(l.start).Round(time.Second))
}

func (l *statusLine) end() {
	if l.w != nil && !l.shown.IsZero() {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = time.Time{}
	}
}

// progress is a writer that shows the number of bytes written to it on a terminal.
type progress struct {
	line        *statusLine
	done, total int64 // total -1: unknown
}

const minProgressSize = 8 << 20 // bytes; smaller transfers show no progress

func newProgress(w io.Writer, total int64) *progress {
	if total >= 0 && total < minProgressSize {
		w = nil
	}

	return &progress{line: newStatusLine(w), total: total}
}

// Write counts the bytes of b.
func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	p.line.show(p.text(time.Since(p.line.start)))

	return len(b), nil
}

// text returns how far the transfer is, its rate, and the time left.
func (p *progress) text(elapsed time.Duration) string {
	const bar = 30
	rate := int64(float64(p.done) / max(elapsed.Seconds(), 0.001))
	if p.total <= 0 || p.done == 0 {
		return fmt.Sprintf("%s, %s/s", formatSize(p.done), formatSize(rate))
	}

	remaining := time.Duration(float64(elapsed) * float64(p.total-p.done) / float64(p.done))
	filled := min(p.done, p.total) * bar / p.total

	return fmt.Sprintf("[%-*s] %3d %%  %s of %s, %s/s, %s left", bar, strings.Repeat("#", int(filled)),
		p.done*100/p.total, formatSize(p.done), formatSize(p.total), formatSize(rate), remaining.Round(time.Second))
}

func (p *progress) end() { p.line.end() }
