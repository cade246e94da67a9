package standalone

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// secrets are the settings whose values are not shown.
var secrets = []string{"db-uri", "jwt-secret"}

// String returns the effective configuration in file format. It masks secrets and app.settings,
// which may also be secret.
func (c Config) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.effective)) {
		value := c.effective[name]
		if value != "" && (slices.Contains(secrets, name) || strings.HasPrefix(name, appPrefix)) {
			value = "********"
		}

		fmt.Fprintf(&b, "%s = %q\n", name, value)
	}

	return b.String()
}

// shownCatalog is the catalog in /schema_cache's format, for debugging.
type shownCatalog struct {
	Schemas    []string            `json:"schemas"`
	Relations  []*catalog.Relation `json:"relations"`
	Links      []*catalog.Link     `json:"links"`
	Functions  []*catalog.Function `json:"functions"`
	MediaTypes []catalog.Handler   `json:"mediaTypes"`
	GeoJSON    bool                `json:"geoJSON"`
}

func newShownCatalog(c *catalog.Catalog) shownCatalog {
	s := shownCatalog{Schemas: c.Schemas, MediaTypes: c.Handlers, GeoJSON: c.GeoJSON != catalog.Name{}}
	for _, name := range slices.SortedFunc(maps.Keys(c.Relations), catalog.Name.Compare) {
		s.Relations = append(s.Relations, c.Relations[name])
	}

	for _, name := range slices.SortedFunc(maps.Keys(c.Links), catalog.Name.Compare) {
		s.Links = append(s.Links, c.Links[name]...)
	}

	for _, name := range slices.SortedFunc(maps.Keys(c.Functions), catalog.Name.Compare) {
		s.Functions = append(s.Functions, c.Functions[name]...)
	}

	return s
}
