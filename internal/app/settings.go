package app

import (
	"reflect"
	"strings"
)

// fromDefault is the source of a default value.
const fromDefault = "default"

// Documented returns the settings as the binary declares them, with their defaults as values.
func Documented() []Setting {
	t := reflect.TypeFor[Config]()
	var settings []Setting
	section := ""
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name := tag.Get("env")
		if name == "" {
			continue
		}
		if s := tag.Get("section"); s != "" {
			section = s
		}
		settings = append(settings, Setting{
			Name: name, Section: section, Default: tag.Get("envDefault"), Source: fromDefault,
			Secret: tag.Get("secret") != "", url: tag.Get("secret") == "url", keys: tag.Get("secret") == "keys",
			Value: tag.Get("envDefault"), raw: tag.Get("envDefault"), choice: strings.Fields(tag.Get("oneof")),
		})
	}
	return settings
}

// fieldSetting finds the setting of a struct field.
func fieldSetting(field string) string {
	f, _ := reflect.TypeFor[Config]().FieldByName(field)
	return f.Tag.Get("env")
}

// shownValue returns the value as it may be displayed.
func (s Setting) shownValue() string {
	switch {
	case s.raw == "" || !s.Secret:
		return s.raw
	case s.url:
		return redactURL(s.raw)
	}
	return hidden
}
