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
