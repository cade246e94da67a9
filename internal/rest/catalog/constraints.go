package catalog

import (
	"slices"

	"github.com/jackc/pgx/v5"
)

// constraint is a primary key, unique or foreign key constraint on any relation.
type constraint struct {
	ID            uint32
	Name          string
	Kind          byte // p, u, f
	RelationID    uint32
	Columns       []int16
	TargetID      uint32 // a foreign key's target
	TargetColumns []int16
	// Partition reports whether a foreign key from or to a partition repeats the partitioned
	// table's.
	Partition            bool
	Forced, TargetForced bool // row security applies to the owner of the relation, the target
	Cascades             bool // a change to the target changes the relation
}

// selectConstraints selects the constraints on all tables, since an exposed view can show a hidden
// table. OIDs below 16384 belong to PostgreSQL's own tables.
const selectConstraints = `
		select k.oid as id, k.conname as name, k.contype as kind, k.conrelid as relation_id, k.conkey as columns,
			k.confrelid as target_id, coalesce(k.confkey, '{}') as target_columns,
			k.contype = 'f' and (c.relispartition or target.relispartition) as partition,
			c.relforcerowsecurity as forced, coalesce(target.relforcerowsecurity, false) as target_forced,
			k.contype = 'f' and not (k.confupdtype in ('a', 'r') and k.confdeltype in ('a', 'r')) as cascades
		from pg_catalog.pg_constraint k
		join pg_catalog.pg_class c on c.oid = k.conrelid
		left join pg_catalog.pg_class target on target.oid = k.confrelid
		where k.conrelid >= 16384 and k.contype in ('p', 'u', 'f')
		order by k.oid`

func (r *reader) readConstraints(read pgx.Rows) error {
	list, err := collect[constraint](read)
	if err != nil {
		return err
	}

	r.setInert(list)
	list = slices.DeleteFunc(list, func(k constraint) bool { return k.Partition })

	faces := r.faces(list)
	setPrimaryKeys(list, faces)
	r.catalog.link(list, faces)

	return nil
}

// face is a relation that exposes a table: the table itself, or a view.
type face struct {
	relation *Relation
	// by attribute number in the table; a view can show a column several times
	columns map[int16][]string
}

// faces returns each table's faces by its OID, with the constraint columns.
func (r *reader) faces(list []constraint) map[uint32][]*face {
	keyColumns := map[attribute]bool{}
	for _, k := range list {
		for _, number := range k.Columns {
			keyColumns[attribute{k.RelationID, number}] = true
		}

		for _, number := range k.TargetColumns {
			keyColumns[attribute{k.TargetID, number}] = true
		}
	}

	faces := map[uint32][]*face{}
	for _, c := range r.columns {
		origin := r.origin(c.attribute)
		if !keyColumns[origin] {
			continue
		}

		relation, of := r.relations[c.relation], faces[origin.relation]
		if len(of) == 0 || of[len(of)-1].relation != relation {
			of = append(of, &face{relation, map[int16][]string{}})
			faces[origin.relation] = of
		}

		f := of[len(of)-1]
		f.columns[origin.number] = append(f.columns[origin.number], c.name)
	}

	return faces
}

// maxChoices is the number of combinations up to which all are links.
const maxChoices = 16

// choices returns the combinations in which a face shows columns, or none if a column is missing. A
// view with too many combinations most likely shows a table several times: only the first columns
// are combined with each other, then the second ones, and so on.
func (f *face) choices(numbers []int16) [][]string {
	most, all := 0, 1
	for _, n := range numbers {
		count := len(f.columns[n])
		if count == 0 {
			return nil
		}

		most, all = max(most, count), min(all*count, maxChoices+1)
	}

	if all <= maxChoices {
		most = all
	}

	choices := make([][]string, most)
	for i := range choices {
		rest, size := i, all
		for _, n := range numbers {
			names := f.columns[n]
			if all > maxChoices {
				choices[i] = append(choices[i], names[min(i, len(names)-1)])
				continue
			}

			size /= len(names)
			choices[i] = append(choices[i], names[rest/size])
			rest %= size
		}
	}

	return choices
}

// setPrimaryKeys sets the relations' primary keys. A view over several tables has the keys of all
// tables whose key it shows whole: together they identify its rows.
func setPrimaryKeys(list []constraint, faces map[uint32][]*face) {
	for _, k := range list {
		if k.Kind != 'p' {
			continue
		}

		for _, f := range faces[k.RelationID] {
			if choices := f.choices(k.Columns); len(choices) > 0 {
				f.relation.PrimaryKey = append(f.relation.PrimaryKey, choices[0]...)
			}
		}
	}
}

// unique returns each relation's unique column sets.
func unique(list []constraint) map[uint32][][]int16 {
	sets := map[uint32][][]int16{}
	for _, k := range list {
		if k.Kind != 'f' {
			sets[k.RelationID] = append(sets[k.RelationID], slices.Sorted(slices.Values(k.Columns)))
		}
	}

	return sets
}
