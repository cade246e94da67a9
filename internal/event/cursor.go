package event

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a snapshot of PostgreSQL: which transactions it sees.
type snapshot struct {
	text       string // as PostgreSQL writes it: xmin:xmax:xip,xip
	xmin, xmax uint64
	running    []uint64 // transactions below xmax that it does not see
}

// maxSnapshotSize is the maximum length in bytes: some thousand running transactions.
const maxSnapshotSize = 64 << 10

func parseSnapshot(text string) (snapshot, bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || len(text) > maxSnapshotSize {
		return snapshot{}, false
	}

	xmin, err1 := strconv.ParseUint(parts[0], 10, 64)
	xmax, err2 := strconv.ParseUint(parts[1], 10, 64)
	s := snapshot{text: text, xmin: xmin, xmax: xmax}
	if err1 != nil || err2 != nil || xmin == 0 || xmin > xmax {
		return snapshot{}, false
	}
	if parts[2] == "" {
		return s, true
	}

	for part := range strings.SplitSeq(parts[2], ",") {
		xid, err := strconv.ParseUint(part, 10, 64)
		if err != nil || xid < xmin || xid >= xmax {
			return snapshot{}, false
		}
		s.running = append(s.running, xid)
	}

	return s, slices.IsSorted(s.running)
}

// sees reports whether a transaction had committed or rolled back when the snapshot was taken.
func (s snapshot) sees(xid uint64) bool {
	return xid < s.xmax && !slices.Contains(s.running, xid)
}

// mayMiss reports whether the snapshot may not see a change of the transactions up to last. It errs
// on the side of yes: PostgreSQL's snapshots name the running transactions of all databases, so
// that an old one of another project, which wrote no change here, counts as well.
func (s snapshot) mayMiss(last uint64) bool { return last >= s.xmin }

// isBefore reports whether the snapshot was taken before another one of the same history.
func (s snapshot) isBefore(other snapshot) bool { return s.xmin < other.xmin || s.xmax < other.xmax }

// position is a place in a log: all changes that from sees are before it, and of those that only to
// sees, the ones up to xid and seq. Without to it is exactly from.
type position struct {
	from, to snapshot
	xid, seq uint64
}

// cursor encodes a position for clients. epoch identifies the database, see [head.epoch].
func (p position) cursor(epoch string) string {
	fields := []string{epoch, p.from.text}
	if p.to.text != "" {
		fields = append(fields, p.to.text, strconv.FormatUint(p.xid, 10), strconv.FormatUint(p.seq, 10))
	}

	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, " ")))
}

// parseCursor decodes a cursor. It reports false for a text that is none.
func parseCursor(text string) (p position, epoch string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	fields := strings.Split(string(raw), " ")
	if err != nil || (len(fields) != 2 && len(fields) != 5) {
		return position{}, "", false
	}

	if p.from, ok = parseSnapshot(fields[1]); !ok || len(fields) == 2 {
		return p, fields[0], ok
	}

	if p.to, ok = parseSnapshot(fields[2]); !ok {
		return position{}, "", false
	}

	var err1, err2 error
	p.xid, err1 = strconv.ParseUint(fields[3], 10, 64)
	p.seq, err2 = strconv.ParseUint(fields[4], 10, 64)

	return p, fields[0], err1 == nil && err2 == nil && p.xid > 0
}
