#include "py_usage.h"

#include <stdlib.h>
#include <string.h>

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
    usage->memory = m->memory;
    shmq_broker_look(m, &usage->facts);
    shmq_blocks_usage(m, &usage->blocks);
}

PyObject *shmq_py_usage_dict(const shmq_py_usage *usage) {
    const shmq_broker_facts *facts = &usage->facts;
    const shmq_block_usage *blocks = &usage->blocks;
    shmq_py_number numbers[] = {
        {"memory", usage->memory},
        {"reserved", facts->reserved_bytes},
        {"used", facts->used_bytes - blocks->granules_unused * SHMQ_GRANULE_BYTES},
        {"granules", (usage->memory - facts->fixed_bytes) / SHMQ_GRANULE_BYTES},
        {"granules_free", facts->granules_free},
        {"slabs", blocks->slabs},
        {"blocks", blocks->blocks},
        {"blocks_used", blocks->used},
        {"blocks_building", blocks->building},
        {"block_bytes_used", blocks->bytes_used},
        {"block_bytes", blocks->bytes_total},
        {"damage", facts->damage},
        {"rescues", facts->rescues},
        {"deaths", facts->deaths},
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

PyObject *shmq_py_queue_names(shmq_member *m) { return names_where(m, shmq_queue_name); }

PyObject *shmq_py_ending_queues(shmq_member *m) { return names_where(m, shmq_queue_ending); }

static bool has_alerts(shmq_member *m, uint32_t index, char *name, uint32_t *incarnation) {
    shmq_queue view;
    return shmq_queue_named(m, index, name, incarnation) && name[0] != 0 && shmq_queue_look(m, index, &view) == NULL &&
           shmq_alerts_wanted(&view);
}

PyObject *shmq_py_alert_queues(shmq_member *m) { return names_where(m, has_alerts); }

PyObject *shmq_py_memory_users(shmq_member *m) {
    PyObject *list = PyList_New(0);
    shmq_memory_use *uses = malloc(SHMQ_QUEUES * sizeof *uses);
    uint32_t count = 0, high = shmq_queue_high(m);
    if (list == NULL || uses == NULL) {
        free(uses);
        return list;
    }
    Py_BEGIN_ALLOW_THREADS
    if (shmq_structure_try(m) == SHMQ_OK) {
        for (uint32_t index = 0; index < high; index++) {
            count += shmq_memory_use_of(m, index, &uses[count]);
        }
        shmq_structure_unlock(m);
    }
    Py_END_ALLOW_THREADS
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item =
            Py_BuildValue("(yKK)", uses[i].name, (unsigned long long)uses[i].slots, (unsigned long long)uses[i].bodies);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    free(uses);
    return list;
}

PyObject *shmq_py_header(const shmq_member *m) {
    const shmq_segment_shm *header = m->header;
    char path[SHMQ_PATH_MAX];
    memcpy(path, header->path, sizeof(path));
    shmq_py_number numbers[] = {
        {"version", header->version},
        {"fingerprint", header->fingerprint},
        {"memory", m->memory},
        {"features_required", header->features_required},
        {"features", header->features},
        {"created_ns", header->created_ns},
        {"epoch", shmq_broker_epoch(m)},
        {"patience_ns", m->patience_ns},
        {"disk", m->disk},
        {"granules", m->granule_count},
        {"uid", header->uid},
        {"mode", header->mode},
    };
    PyObject *dict = shmq_py_numbers(numbers, sizeof(numbers) / sizeof(numbers[0]));
    if (dict == NULL || shmq_py_put(dict, "anonymous", PyBool_FromLong(m->anonymous)) != 0 ||
        shmq_py_put(dict, "uuid", PyBytes_FromStringAndSize((const char *)header->uuid, 16)) != 0 ||
        shmq_py_put(dict, "key_check",
                    PyBytes_FromStringAndSize((const char *)header->key_check,
                                              m->encrypts ? (Py_ssize_t)sizeof(header->key_check) : 0)) != 0 ||
        shmq_py_put(dict, "boot_id", PyBytes_FromStringAndSize((const char *)header->boot_id, 16)) != 0 ||
        shmq_py_put(dict, "path", PyUnicode_DecodeFSDefaultAndSize(path, (Py_ssize_t)strnlen(path, sizeof(path)))) !=
            0) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

PyObject *shmq_py_wall_of(PyObject *member, PyObject *monotonic_ns) {
    shmq_member *m = ((shmq_py_member *)member)->member;
    unsigned long long ns = PyLong_AsUnsignedLongLong(monotonic_ns);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!shmq_member_is_closed(m) && !shmq_member_forked(m) && ns > shmq_now_ns()) {
        (void)shmq_put_ns(m); /* notices a step that no put has met yet */
    }
    return PyLong_FromUnsignedLongLong(shmq_wall_of(m, ns));
}

PyObject *shmq_py_age_ns(PyObject *member, PyObject *monotonic_ns) {
    unsigned long long ns = PyLong_AsUnsignedLongLong(monotonic_ns);
    shmq_member *m = ((shmq_py_member *)member)->member;
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(shmq_age_ns(m, ns));
}
