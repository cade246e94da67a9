package catalog

// Estimated object sizes in bytes, without their texts but with their slots in maps and slices.
const (
	relationBytes = 400
	columnBytes   = 400
	linkBytes     = 300
	functionBytes = 300
	paramBytes    = 60
)

// Size returns the catalog's approximate memory use in bytes.
func (c *Catalog) Size() int {
	size := 1 << 10
	for name, r := range c.Relations {
		size += relationBytes + len(name.Schema) + len(name.Name) + len(r.Description)
		for _, col := range r.Columns {
			size += columnBytes + len(col.Name) + len(col.Type) + len(col.BaseType) + len(col.Default) +
				len(col.Description)

			for _, label := range col.Enum {
				size += 16 + len(label)
			}
		}
	}

	for _, links := range c.Links {
		for _, l := range links {
			size += linkBytes + 64*(len(l.Pairs)+len(l.ThroughPairs))
		}
	}

	for name, overloads := range c.Functions {
		for _, f := range overloads {
			size += functionBytes + len(name.Name) + len(f.Description)
			for _, p := range f.Params {
				size += paramBytes + len(p.Name) + len(p.Type)
			}

			for _, p := range f.Returns.Columns {
				size += paramBytes + len(p.Name) + len(p.Type)
			}
		}
	}

	return size
}
