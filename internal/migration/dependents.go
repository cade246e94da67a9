package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// Object kinds.
var (
	// parts disappear with the object that they belong to.
	parts = []string{"INDEX", "CONSTRAINT", "CHECK CONSTRAINT", "FK CONSTRAINT", "TRIGGER", "POLICY", "RULE", "DEFAULT",
		"ROW SECURITY", "COMMENT", "ACL", "STATISTICS", "INDEX ATTACH", "TABLE ATTACH", "SEQUENCE OWNED BY",
		"PUBLICATION TABLE", "SECURITY LABEL"}

	// users may use an object that goes, and are created again after it.
	users = append([]string{"VIEW", "MATERIALIZED VIEW", "FUNCTION", "PROCEDURE", "AGGREGATE"}, parts...)

	// released can prevent a change to an object that they use.
	released = []string{"VIEW", "MATERIALIZED VIEW", "FUNCTION", "PROCEDURE", "AGGREGATE", "RULE", "POLICY", "TRIGGER",
		"CHECK CONSTRAINT", "FK CONSTRAINT", "STATISTICS", "PUBLICATION TABLE", "CAST", "OPERATOR"}

	// last are dropped after everything that may use them has changed.
	last = []string{"TYPE", "DOMAIN", "FUNCTION", "PROCEDURE", "AGGREGATE", "SEQUENCE", "SCHEMA", "COLLATION",
		"OPERATOR", "OPERATOR CLASS", "OPERATOR FAMILY", "TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY"}

	// afterIndexes follow the indexes and their constraints in a dump.
	afterIndexes = []string{"INDEX ATTACH", "STATISTICS", "RULE", "TRIGGER", "FK CONSTRAINT", "ROW SECURITY", "POLICY",
		"PUBLICATION"}
)

// spread drops the dropped objects' dependents. A table's dependency can't be replaced: that would
// destroy the table.
func (c *comparison) spread() {
	for again := true; again; {
		again = false
		for i := range c.from {
			e := &c.from[i]
			if c.dropped[key(e)] && c.spreadFrom(e) {
				again = true
			}
		}
	}
}

// spreadFrom drops an object's users. It reports whether it has changed anything.
func (c *comparison) spreadFrom(e *pgdump.Entry) (changed bool) {
	recreated := c.new[key(e)] != nil
	for i := range c.from {
		user := &c.from[i]
		if c.dropped[key(user)] || !slices.Contains(user.Depends, e.ID) {
			continue
		}

		switch {
		case slices.Contains(users, user.Desc):
			c.dropped[key(user)] = true
			delete(c.altered, key(user))
			changed = true
		case user.Desc == "SEQUENCE" && e.Desc == "TABLE": // the table owns it, and would drop it
			if owned := ownership(user); c.old[owned] != nil && !c.dropped[owned] {
				c.dropped[owned] = true
				changed = true
			}
		case user.Desc == "TABLE" && c.isReplaced(e):
		case recreated:
			c.unresolved = append(c.unresolved, differing(key(e), fmt.Sprintf("%s %s uses it",
				strings.ToLower(user.Desc), qualified(user))))
			delete(c.dropped, key(e))
			c.keepNotes(e)

			return true
		}
	}

	return changed
}

// ownership returns the key for the entry that gives a sequence to a column.
func ownership(sequence *pgdump.Entry) string {
	return "SEQUENCE OWNED BY\n" + sequence.Namespace + "\n" + sequence.Tag
}

// release drops the dependents if an object can't change while they exist. They are created again.
// Indexes and keys follow when their table changes.
func (c *comparison) release(e *pgdump.Entry) {
	for i := range c.from {
		user := &c.from[i]
		if slices.Contains(user.Depends, e.ID) && slices.Contains(released, user.Desc) {
			c.dropped[key(user)] = true
			delete(c.altered, key(user))
		}
	}
}

// keepNotes keeps the comment and the privileges if an object is not replaced after all.
func (c *comparison) keepNotes(of *pgdump.Entry) {
	for i := range c.from {
		e := &c.from[i]
		isNote := e.Desc == "COMMENT" || e.Desc == "ACL"
		if isNote && c.new[key(e)] != nil && slices.Contains(e.Depends, of.ID) {
			delete(c.dropped, key(e))
			c.classify(e)
		}
	}
}
