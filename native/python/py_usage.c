#include "py_usage.h"

#include "shmq/ending.h"
#include "shmq/handle.h"
#include "shmq/structure.h"

PyObject *shmq_py_numbers(const shmq_py_number *numbers, size_t count) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < count; i++) {
        if (shmq_py_put(dict, numbers[i].name, PyLong_FromUnsignedLongLong(numbers[i].value)) != 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

void shmq_py_usage_look(const shmq_member *m, shmq_py_usage *usage) {
    usage->m = m;
    usage->free = shmq_granules_free(m);
    shmq_blocks_usage(m, &usage->blocks);
}

PyObject *shmq_py_usage_dict(const shmq_py_usage *usage) {
    const shmq_member *m = usage->m;
    const shmq_block_usage *blocks = &usage->blocks;
    uint64_t fixed = (uint64_t)(m->slabs - m->base);
    shmq_py_number numbers[] = {
        {"memory", m->size},
        {"reserved", shmq_load_relaxed(&m->header->reserved_bytes)},
        {"used", fixed + (m->granule_count - usage->free) * SHMQ_GRANULE_BYTES},
        {"granules", m->granule_count},
        {"granules_free", usage->free},
        {"slabs", blocks->slabs},
        {"blocks", blocks->blocks},
        {"blocks_used", blocks->used},
        {"blocks_building", blocks->building},
        {"block_bytes_used", blocks->bytes_used},
        {"block_bytes", blocks->bytes_total},
        {"damage", shmq_load_relaxed(&m->header->damage)},
        {"rescues", shmq_load_relaxed(&m->header->rescues)},
        {"deaths", shmq_load_relaxed(&m->header->deaths)},
    };
    return shmq_py_numbers(numbers, sizeof(numbers) / sizeof(numbers[0]));
}

static PyObject *names_where(shmq_member *m, bool is_wanted(shmq_member *, uint32_t, char *, uint32_t *)) {
    PyObject *list = PyList_New(0);
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; list != NULL && index < high; index++) {
        char name[SHMQ_NAME_MAX + 1];
        uint32_t incarnation;
        if (!is_wanted(m, index, name, &incarnation)) {
            continue;
        }
        PyObject *item = Py_BuildValue("(yII)", name, index, incarnation);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static bool in_service(shmq_member *m, uint32_t index, char *name, uint32_t *incarnation) {
    return shmq_queue_named(m, index, name, incarnation);
}

PyObject *shmq_py_queue_names(shmq_member *m) { return names_where(m, in_service); }

PyObject *shmq_py_ending_queues(shmq_member *m) { return names_where(m, shmq_queue_ending); }
