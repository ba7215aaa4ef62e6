package trust

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// memoryRecords keeps pins in memory. Several servers can share it.
type memoryRecords struct {
	mu    sync.Mutex
	pins  map[core.PinKey]map[string]core.Pin
	reads int
	down  bool
}

var errDown = errors.New("the database is unavailable")

func newRecords() *memoryRecords { return &memoryRecords{pins: map[core.PinKey]map[string]core.Pin{}} }

func (m *memoryRecords) begin() (done func(), err error) {
	m.mu.Lock()
	if m.down {
		err = errDown
	}
	return m.mu.Unlock, err
}

func (m *memoryRecords) Pins(_ context.Context, k core.PinKey) (map[string]core.Pin, error) {
	done, err := m.begin()
	defer done()
	m.reads++
	if err != nil {
		return nil, err
	}
	return maps.Clone(m.pins[k]), nil
}

func (m *memoryRecords) AddPins(_ context.Context, k core.PinKey, definitions map[string]string) error {
	done, err := m.begin()
	defer done()
	if m.pins[k] == nil {
		m.pins[k] = map[string]core.Pin{}
	}
	for tool, definition := range definitions {
		if _, ok := m.pins[k][tool]; !ok && err == nil {
			m.pins[k][tool] = core.Pin{Tool: tool, Definition: definition}
		}
	}
	return err
}

func (m *memoryRecords) OfferPin(_ context.Context, k core.PinKey, p core.Pin) (bool, error) {
	done, err := m.begin()
	defer done()
	old := m.pins[k][p.Tool]
	if err != nil || old.Offered == p.Offered || old.Definition == p.Offered {
		return false, err
	}
	if m.pins[k] == nil {
		m.pins[k] = map[string]core.Pin{}
	}
	old.Tool, old.Offered, old.RenamedFrom, old.Refused, old.ChangedAt = p.Tool, p.Offered, p.RenamedFrom, false, time.Now()
	m.pins[k][p.Tool] = old
	return true, nil
}

func (m *memoryRecords) DecidePin(_ context.Context, k core.PinKey, tool, offered string, accept bool) error {
	done, err := m.begin()
	defer done()
	p := m.pins[k][tool]
	if err != nil || p.Offered != offered {
		return errors.Join(err, core.Errorf(core.CodeNotFound, "no such change"))
	}
	p.Refused = !accept
	if accept {
		p.Definition, p.Offered, p.RenamedFrom = offered, "", ""
	}
	m.pins[k][tool] = p
	return nil
}

func (m *memoryRecords) ChangedPins(_ context.Context, workspace string) (keys []core.PinKey, pins []core.Pin, err error) {
	done, err := m.begin()
	defer done()
	for k, all := range m.pins {
		for _, tool := range slices.Sorted(maps.Keys(all)) {
			if all[tool].Offered != "" && k.Workspace == workspace {
				keys, pins = append(keys, k), append(pins, all[tool])
			}
		}
	}
	return keys, pins, err
}
