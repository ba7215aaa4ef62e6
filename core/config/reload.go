package config

import (
	"reflect"
	"slices"
)

// Changes are the sections in which two configurations differ, as the file names them. A section may be in both lists.
type Changes struct {
	Applied []string // by a reload
	Restart []string // by a restart only
}

// Reload returns the configuration that a server which runs with before applies when it reads next: what only a restart
// applies stays as in before, so that the next reload still reports it. The tags of Config say what that is.
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
	frozen  []string // sections that take a restart this time
	changes Changes
}

// compare notes the section when the values differ, and undoes the difference unless a reload applies it. Fields without a
// tag are like the value that they are part of.
func (r *reload) compare(section string, applied bool, before, next reflect.Value) {
	if hasTags(next) {
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

// hasTags reports whether the fields of a struct say what a reload applies.
func hasTags(v reflect.Value) bool { return len(taggedFields(v.Type())) > 0 }

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

// Reloadable returns what a reload applies, as the file names it: sections, and single settings of others.
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
