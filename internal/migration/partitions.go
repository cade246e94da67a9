package migration

import (
	"slices"

	"github.com/socle-dev/socle/internal/pgdump"
)

// deferPartitions leaves out changes to partitions whose table changes. That changes them too, and
// the next comparison has the rest.
func (c *comparison) deferPartitions() {
	wholes := map[*pgdump.Entry]*pgdump.Entry{} // partitioned tables, by their partitions
	for i := range c.from {
		if attach := &c.from[i]; attach.Desc == "TABLE ATTACH" && !c.dropped[key(attach)] {
			if partition := c.old["TABLE\n"+attach.Namespace+"\n"+attach.Tag]; partition != nil {
				wholes[partition] = whole(c.from, attach)
			}
		}
	}

	var keys []string
	for partition := range wholes {
		for table := wholes[partition]; table != nil; table = wholes[table] {
			if len(c.altered[key(table)]) > 0 {
				keys = append(keys, key(partition))
			}
		}
	}

	for _, k := range keys {
		delete(c.altered, k)
	}
}

// whole returns the partitioned table that an entry attaches a partition to, or nil.
func whole(entries []pgdump.Entry, attach *pgdump.Entry) *pgdump.Entry {
	for i := range entries {
		e := &entries[i]
		partition := e.Namespace == attach.Namespace && e.Tag == attach.Tag
		if e.Desc == "TABLE" && !partition && slices.Contains(attach.Depends, e.ID) {
			return e
		}
	}

	return nil
}

// extendsKept reports whether an entry attaches a partition in the hierarchy under a table that was
// there before.
func (c *comparison) extendsKept(e *pgdump.Entry) bool {
	for e != nil && e.Desc == "TABLE ATTACH" {
		table := whole(c.to, e)
		if table == nil || c.isKept(table) {
			return table != nil
		}

		e = c.new["TABLE ATTACH\n"+table.Namespace+"\n"+table.Tag]
	}

	return false
}

// isOfDetached reports whether a foreign key belongs to a detached partition. The partition keeps
// its table's foreign key, so the next comparison decides.
func (c *comparison) isOfDetached(e *pgdump.Entry) bool {
	return slices.ContainsFunc(c.to, func(t pgdump.Entry) bool {
		attach := "TABLE ATTACH\n" + t.Namespace + "\n" + t.Tag
		return t.Desc == "TABLE" && c.dropped[attach] && slices.Contains(e.Depends, t.ID)
	})
}
