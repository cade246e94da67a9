package cli

// addDetails adds the size and the proof of each listed backup, which are metadata of the list.
func (p *reply) addDetails() {
	items, _ := p.content.([]any)
	details, _ := p.metadata.value("details").(record)

	for i, item := range items {
		backup, _ := item.(record)
		id, _ := backup.value("uuid").(string)
		detail, ok := details.value(id).(record)
		if !ok {
			continue
		}

		for _, name := range []string{"size", "provenAt", "proofError"} {
			backup = append(backup, member{name, detail.value(name)})
		}

		items[i] = backup
	}
}

// addNames adds the name of each field of a form, which is metadata of the response.
func (p *reply) addNames() {
	names, ok := p.metadata.value("names").(record)
	if !ok {
		return
	}

	recordOf := func(item any) record {
		field, _ := item.(record)
		id, _ := field.value("uuid").(string)
		return append(field, member{"name", names.value(id)})
	}

	switch content := p.content.(type) {
	case []any:
		for i, item := range content {
			content[i] = recordOf(item)
		}
	case record:
		p.content = recordOf(content)
	}
}
