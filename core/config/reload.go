package config

import (
	"reflect"
	"slices"
)

// Changes lists the sections in which two configurations differ, by their names in the file. A section may be in
// both lists.
type Changes struct {
	Applied []string // by a reload
	Restart []string // only by a restart
}

// Reload returns the configuration to apply when a server that is running with before reads next. Settings that only a
// restart applies keep their values in before, so that the next reload still reports them. The tags of Config say
// which ones they are.
func Reload(before, next *Config) (*Config, Changes) {
	merged := *next
	r := reload{frozen: []string{}}
	if before.Dev() != next.Dev() {
		r.frozen = append(r.frozen, "auth") // dev mode decides how the listener checks requests
	}
	if before.Audit.On() != next.Audit.On() {
		r.frozen = append(r.frozen, "audit")
	}
	r.compare("", false, reflect.ValueOf(before).Elem(), reflect.ValueOf(&merged).Elem())
	return &merged, r.changes
}

// reload compares two configurations.
type reload struct {
	frozen  []string // sections that require a restart this time
	changes Changes
}

// compare records the section if the values differ, and undoes the difference unless a reload applies it.
// Fields without a tag are treated like the value that contains them.
func (r *reload) compare(section string, applied bool, before, next reflect.Value) {
	if len(taggedFields(next.Type())) > 0 {
		for i := range next.NumField() {
			f := next.Type().Field(i)
			how, tagged := f.Tag.Lookup("reload")
			switch {
			case section == "" && tagged:
				r.compare(f.Tag.Get("section"), how == "applied", before.Field(i), next.Field(i))
			case section != "":
				r.compare(section, how == "applied" || !tagged && applied, before.Field(i), next.Field(i))
			}
		}
		return
	}
	if reflect.DeepEqual(before.Interface(), next.Interface()) {
		return
	}
	list := &r.changes.Applied
	if !applied || slices.Contains(r.frozen, section) {
		list = &r.changes.Restart
		next.Set(before)
	}
	if !slices.Contains(*list, section) {
		*list = append(*list, section)
	}
}

func taggedFields(t reflect.Type) (all []reflect.StructField) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if _, tagged := f.Tag.Lookup("reload"); tagged {
			all = append(all, f)
		}
	}
	return all
}

// Reloadable returns what a reload applies, by name in the file: sections, and single settings in other
// sections.
func Reloadable() (all []string) {
	for _, f := range taggedFields(reflect.TypeFor[Config]()) {
		section := f.Tag.Get("section")
		if f.Tag.Get("reload") == "applied" && !slices.Contains(all, section) {
			all = append(all, section)
		}
		for _, setting := range taggedFields(f.Type) {
			if setting.Tag.Get("reload") == "applied" {
				all = append(all, section+"."+setting.Tag.Get("json"))
			}
		}
	}
	return all
}
