package migration

import (
	"slices"
	"strings"
)

// alteration turns one table into another.
type alteration struct {
	from, to table

	hasDefault func(column string) bool // the column's default is a separate entry
	replaced   func(sql string) bool    // the text names a type that is created again
	viaText    bool                     // convert values through text, since no cast exists

	changes []change
	moved   []string // columns that change their type or go
	rest    string   // what nothing changes
}

// run computes the statements. The list of columns omits inherited ones, so a table that changes
// its inheritance leaves its columns to the next comparison.
func (a *alteration) run() {
	alter := "ALTER TABLE " + a.to.name + " "
	a.alterTail(alter)
	if a.rest != "" || inheritance(a.from.tail) != inheritance(a.to.tail) {
		return
	}

	for _, name := range sortedKeys(a.from.constraints) {
		if !a.keeps(name) {
			a.add(change{sql: alter + "DROP CONSTRAINT " + name})
		}
	}

	again := a.generatedAgain()
	for _, c := range again {
		a.add(change{sql: alter + "DROP COLUMN " + c.name, warning: warnRewrite})
		a.moved = append(a.moved, c.name)
	}

	for _, c := range a.to.columns {
		old := a.from.column(c.name)
		switch {
		case slices.Contains(again, c):
		case old == nil:
			a.add(addColumn(alter, c))
		case old.text != c.text, a.replaced(c.typ):
			a.alterColumn(alter, *old, c)
		}
	}

	for _, c := range a.from.columns {
		if a.to.column(c.name) == nil {
			a.add(change{sql: alter + "DROP COLUMN " + c.name, warning: warnLoss})
			a.moved = append(a.moved, c.name)
		}
	}

	for _, c := range again {
		a.add(change{sql: alter + "ADD COLUMN " + c.text, warning: warnRewrite})
	}

	for _, name := range sortedKeys(a.to.constraints) {
		if !a.keeps(name) {
			a.add(change{sql: alter + "ADD " + a.to.constraints[name], warning: warnScan})
		}
	}

	a.alterFurther()
}

func (a *alteration) add(c change) { a.changes = append(a.changes, c) }

// keeps reports whether a constraint stays as it is.
func (a *alteration) keeps(constraint string) bool {
	sql := a.to.constraints[constraint]
	return a.from.constraints[constraint] == sql && !a.replaced(sql)
}

// generatedAgain returns the generated columns that are created again: those that change, and those
// that use a column that changes its type or goes.
func (a *alteration) generatedAgain() []column {
	var again []column
	for _, c := range a.to.columns {
		old := a.from.column(c.name)
		if c.generated == "" || old == nil {
			continue
		}

		uses := slices.ContainsFunc(a.from.columns, func(used column) bool {
			now := a.to.column(used.name)
			changes := now == nil || now.typ != used.typ || now.collate != used.collate || a.replaced(used.typ)
			return changes && mentions(old.generated, used.name)
		})
		if uses || old.generated != c.generated || old.typ != c.typ || a.replaced(c.text) {
			again = append(again, c)
		}
	}

	return again
}

// alterTail changes what stands before and after the column list.
func (a *alteration) alterTail(alter string) {
	if a.from.head != a.to.head {
		logged := "SET LOGGED"
		if strings.Contains(a.to.head, " UNLOGGED ") {
			logged = "SET UNLOGGED"
		}
		a.add(change{sql: alter + logged, warning: warnRewrite})
	}

	before, was := cutOptions(a.from.tail)
	after, is := cutOptions(a.to.tail)
	for _, option := range was {
		name, _, _ := strings.Cut(option, "=")
		if !slices.ContainsFunc(is, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			a.add(change{sql: alter + "RESET (" + name + ")"})
		}
	}

	for _, option := range is {
		if !slices.Contains(was, option) {
			a.add(change{sql: alter + "SET (" + option + ")"})
		}
	}

	parents, children := parentsOf(before), parentsOf(after)
	switch {
	case before == after:
	case len(parents)+len(children) == 0:
		a.rest = "its partitioning differs"
	default:
		a.alterParents(alter, parents, children)
	}
}

func (a *alteration) alterParents(alter string, from, to []string) {
	for _, parent := range from {
		if !slices.Contains(to, parent) {
			a.add(change{sql: alter + "NO INHERIT " + parent})
		}
	}

	for _, parent := range to {
		if !slices.Contains(from, parent) {
			a.add(change{sql: alter + "INHERIT " + parent})
		}
	}
}

// cutOptions cuts the storage parameters off the text after a table's columns.
func cutOptions(tail string) (rest string, options []string) {
	rest, list, ok := strings.Cut(tail, "WITH (")
	if !ok || !strings.HasSuffix(list, ")") {
		return tail, nil
	}

	return strings.TrimSpace(rest), strings.Split(strings.TrimSuffix(list, ")"), ", ")
}

// parentsOf returns the tables in an INHERITS clause.
func parentsOf(tail string) []string {
	if list := inheritance(tail); list != "" {
		return strings.Split(list, ", ")
	}
	return nil
}

// alterFurther runs and undoes the statements that pg_dump writes after CREATE TABLE.
func (a *alteration) alterFurther() {
	for _, s := range a.from.further {
		if slices.Contains(a.to.further, s) {
			continue
		}

		column, _, ok := strings.Cut(s, " SET STORAGE ")
		if ok { // SET STORAGE DEFAULT needs PostgreSQL 16
			a.add(change{sql: column + " SET STORAGE " + a.storage(column)})
		} else if undo := undoFurther(s); undo != "" {
			a.add(change{sql: undo})
		} else { // perhaps another value replaces it
			a.rest = "nothing undoes " + s
		}
	}

	for _, s := range a.to.further {
		if !slices.Contains(a.from.further, s) {
			a.add(change{sql: s})
		}
	}
}

// storage returns a column type's default storage. alter ends in the column.
func (a *alteration) storage(alter string) string {
	for _, c := range a.to.columns {
		if strings.HasSuffix(alter, " ALTER COLUMN "+c.name) && isMain(c.typ) {
			return "MAIN"
		}
	}

	return "EXTENDED"
}

func isMain(typ string) bool {
	name, _, _ := strings.Cut(typ, "(")
	return name == "numeric" || name == "inet" || name == "cidr"
}

// inheritance returns the INHERITS clause in the text after a table's columns.
func inheritance(tail string) string {
	list, inherits := strings.CutPrefix(tail, "INHERITS (")
	list, _, _ = strings.Cut(list, ")")
	if !inherits {
		return ""
	}

	return list
}

func addColumn(alter string, c column) change {
	added := change{sql: alter + "ADD COLUMN " + c.text}
	switch {
	case c.generated != "":
		added.warning = warnRewrite
	case c.notNull && c.value == "":
		added.warning = warnRows
	case strings.Contains(c.value, "("): // perhaps volatile: a value per row
		added.warning = warnRewrite
	}

	return added
}

// alterColumn changes a column.
func (a *alteration) alterColumn(alter string, from, to column) {
	alter += "ALTER COLUMN " + to.name + " "
	if from.generated != "" && to.generated == "" {
		a.add(change{sql: alter + "DROP EXPRESSION"})
	}

	value := from.value
	if from.typ != to.typ || from.collate != to.collate || a.replaced(to.typ) {
		a.moved = append(a.moved, to.name)
		if value != "" {
			a.add(change{sql: alter + "DROP DEFAULT"})
			value = ""
		}

		cast, warning := to.name+"::"+to.typ, warnRewrite
		if a.viaText || a.replaced(to.typ) {
			cast, warning = to.name+"::text::"+to.typ, warnReplaced
		}

		a.add(change{sql: strings.TrimSpace(alter+"TYPE "+to.typ+" "+to.collate) + " USING " + cast, warning: warning})
	}

	if value != to.value && !a.hasDefault(to.name) {
		if to.value == "" {
			a.add(change{sql: alter + "DROP DEFAULT"})
		} else {
			a.add(change{sql: alter + "SET DEFAULT " + to.value})
		}
	}

	switch {
	case !from.notNull && to.notNull:
		a.add(change{sql: alter + "SET NOT NULL", warning: warnScan})
	case from.notNull && !to.notNull:
		a.add(change{sql: alter + "DROP NOT NULL"})
	}
}

// undoFurther returns the statement that undoes one that pg_dump writes after CREATE TABLE, or ""
// if it is unknown.
func undoFurther(s string) string {
	for done, undo := range map[string]string{
		" FORCE ROW LEVEL SECURITY": " NO FORCE ROW LEVEL SECURITY",
	} {
		if before, ok := strings.CutSuffix(s, done); ok {
			return before + undo
		}
	}

	for mark, undo := range map[string]string{
		" REPLICA IDENTITY ": " REPLICA IDENTITY DEFAULT", " SET STATISTICS ": " SET STATISTICS -1",
		" SET COMPRESSION ": " SET COMPRESSION default",
	} {
		if before, _, ok := strings.Cut(s, mark); ok {
			return before + undo
		}
	}

	if before, options, ok := strings.Cut(strings.TrimSuffix(s, ")"), " SET ("); ok {
		names := strings.Split(options, ", ")
		for i, option := range names {
			names[i], _, _ = strings.Cut(option, "=")
		}

		return before + " RESET (" + strings.Join(names, ", ") + ")"
	}

	return ""
}
