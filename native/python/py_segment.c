/* Functions on segments without a membership: making, looking, sweeping; and what open() asks about a directory. */
#include "py_shmq.h"

#include <errno.h>
#include <sys/vfs.h>

static PyObject *segment_create(PyObject *module, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"name", "memory",    "patience_ns", "disk",  "mode",      "anonymous", "path",
                            "uuid", "directory", "id_epoch",    "group", "key_check", NULL};
    const char *name, *uuid, *directory_uuid = NULL, *key_check = NULL;
    unsigned long long memory, patience_ns, disk, device = 0, inode = 0;
    unsigned int mode, id_epoch = 0, group = 0;
    int anonymous;
    Py_ssize_t uuid_bytes, directory_uuid_bytes = 16, key_check_bytes = 0;
    PyObject *path = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sKKKIpO&y#|(KKy#)IIy#:segment_create", names, &name, &memory,
                                     &patience_ns, &disk, &mode, &anonymous, PyUnicode_FSConverter, &path, &uuid,
                                     &uuid_bytes, &device, &inode, &directory_uuid, &directory_uuid_bytes, &id_epoch,
                                     &group, &key_check, &key_check_bytes)) {
        return NULL;
    }
    shmq_segment_plan plan = {.name = name,
                              .memory = memory,
                              .patience_ns = patience_ns,
                              .disk = disk,
                              .mode = mode,
                              .group = group,
                              .anonymous = anonymous != 0,
                              .path = PyBytes_AsString(path),
                              .directory_device = device,
                              .directory_inode = inode,
                              .id_epoch = id_epoch};
    if (uuid_bytes != sizeof(plan.uuid) || directory_uuid_bytes != sizeof(plan.directory_uuid)) {
        Py_DECREF(path);
        return PyErr_Format(PyExc_ValueError, "a uuid has 16 bytes, not %zd and %zd", uuid_bytes, directory_uuid_bytes);
    }
    if (directory_uuid != NULL) {
        memcpy(plan.directory_uuid, directory_uuid, sizeof(plan.directory_uuid));
    }
    memcpy(plan.uuid, uuid, sizeof(plan.uuid));
    if (key_check_bytes != 0 && key_check_bytes != sizeof(plan.key_check)) {
        Py_DECREF(path);
        return PyErr_Format(PyExc_ValueError, "the check of a key has 16 bytes, not %zd", key_check_bytes);
    }
    if (key_check_bytes != 0) {
        memcpy(plan.key_check, key_check, sizeof(plan.key_check));
    }
    shmq_status status;
    Py_BEGIN_ALLOW_THREADS
    status = shmq_segment_create(&plan);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (status != SHMQ_OK) {
        return shmq_py_raise(status);
    }
    Py_RETURN_NONE;
}

static PyObject *identity_dict(const shmq_identity *identity) {
    PyObject *dict = PyDict_New();
    if (dict == NULL) {
        return NULL;
    }
    Py_ssize_t path_bytes = (Py_ssize_t)strnlen(identity->path, sizeof(identity->path));
    if (shmq_py_put(dict, "memory", PyLong_FromUnsignedLongLong(identity->size)) != 0 ||
        shmq_py_put(dict, "created_ns", PyLong_FromUnsignedLongLong(identity->created_ns)) != 0 ||
        shmq_py_put(dict, "patience_ns", PyLong_FromUnsignedLongLong(identity->patience_ns)) != 0 ||
        shmq_py_put(dict, "uid", PyLong_FromUnsignedLong(identity->uid)) != 0 ||
        shmq_py_put(dict, "owner", PyLong_FromUnsignedLong(identity->owner)) != 0 ||
        shmq_py_put(dict, "mode", PyLong_FromUnsignedLong(identity->mode)) != 0 ||
        shmq_py_put(dict, "anonymous", PyBool_FromLong(identity->anonymous)) != 0 ||
        shmq_py_put(dict, "has_members", PyBool_FromLong(identity->has_members)) != 0 ||
        shmq_py_put(dict, "directory",
                    Py_BuildValue("(KKy#)", (unsigned long long)identity->directory_device,
                                  (unsigned long long)identity->directory_inode, (const char *)identity->directory_uuid,
                                  (Py_ssize_t)16)) != 0 ||
        shmq_py_put(dict, "uuid", PyBytes_FromStringAndSize((const char *)identity->uuid, 16)) != 0 ||
        shmq_py_put(dict, "boot_id", PyBytes_FromStringAndSize((const char *)identity->boot_id, 16)) != 0 ||
        shmq_py_put(dict, "path", PyUnicode_DecodeFSDefaultAndSize(identity->path, path_bytes)) != 0) {
        Py_DECREF(dict);
        return NULL;
    }
    return dict;
}

static const char *utf8(PyObject *text) {
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "the name of a segment is a str, not %R", text);
        return NULL;
    }
    return PyUnicode_AsUTF8AndSize(text, NULL);
}

static PyObject *segment_inspect(PyObject *module, PyObject *text) {
    (void)module;
    const char *name = utf8(text);
    if (name == NULL) {
        return NULL;
    }
    shmq_identity identity;
    shmq_status status = shmq_segment_inspect(name, &identity);
    return status == SHMQ_OK ? identity_dict(&identity) : shmq_py_raise(status);
}

static PyObject *segment_sweep(PyObject *module, PyObject *text) {
    (void)module;
    const char *name = utf8(text);
    if (name == NULL) {
        return NULL;
    }
    bool removed = false;
    shmq_status status = shmq_segment_sweep(name, &removed);
    return status == SHMQ_OK ? PyBool_FromLong(removed) : shmq_py_raise(status);
}

static PyObject *segment_remove(PyObject *module, PyObject *arguments) {
    (void)module;
    const char *name;
    int force;
    shmq_py_home home = SHMQ_PY_NO_HOME;
    if (!PyArg_ParseTuple(arguments, "sO&p:segment_remove", &name, shmq_py_home_from, &home, &force)) {
        return NULL;
    }
    shmq_status status = home.given == NULL ? shmq_fail(SHMQ_FOREIGN, "no directory asks for the segment %s", name)
                                            : shmq_segment_remove(name, home.given, force != 0);
    if (status != SHMQ_OK) {
        return shmq_py_raise(status);
    }
    Py_RETURN_NONE;
}

shmq_cipher *shmq_py_cipher(PyObject *key) {
    char *bytes;
    Py_ssize_t length;
    shmq_cipher *cipher = NULL;
    if (PyBytes_AsStringAndSize(key, &bytes, &length) != 0) {
        return NULL;
    }
    if (length != SHMQ_KEY_BYTES) {
        PyErr_Format(PyExc_ValueError, "a key has %u bytes, not %zd", SHMQ_KEY_BYTES, length);
        return NULL;
    }
    shmq_status status = shmq_cipher_open((const uint8_t *)bytes, &cipher);
    if (status != SHMQ_OK) {
        (void)shmq_py_raise(status);
    }
    return cipher;
}

static PyObject *key_check(PyObject *module, PyObject *key) {
    (void)module;
    shmq_cipher *cipher = shmq_py_cipher(key);
    if (cipher == NULL) {
        return NULL;
    }
    PyObject *check = PyBytes_FromStringAndSize((const char *)cipher->check, sizeof(cipher->check));
    cipher->free(cipher);
    return check;
}

static PyObject *boot_id(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    uint8_t id[16];
    shmq_status status = shmq_boot_id(id);
    return status == SHMQ_OK ? PyBytes_FromStringAndSize((const char *)id, sizeof(id)) : shmq_py_raise(status);
}

static PyObject *filesystem_type(PyObject *module, PyObject *descriptor) {
    (void)module;
    int fd = PyObject_AsFileDescriptor(descriptor);
    if (fd < 0) {
        return NULL;
    }
    struct statfs filesystem;
    int answer;
    Py_BEGIN_ALLOW_THREADS /* a file server that does not answer takes its time */
    answer = fstatfs(fd, &filesystem);
    Py_END_ALLOW_THREADS
    if (answer != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromUnsignedLong((unsigned long)(uint32_t)filesystem.f_type);
}

static PyMethodDef functions[] = {
    {"segment_create", (PyCFunction)(void (*)(void))segment_create, METH_VARARGS | METH_KEYWORDS,
     "segment_create(name, memory, patience_ns, disk, mode, anonymous, path, uuid, directory=(0, 0, bytes(16)), id_epoch=0, "
     "group=0, key_check=b'')\n\n"
     "directory: st_dev, st_ino and uuid of the broker's. id_epoch: the high 24 bits of message ids. group: of the file, if "
     "its mode is 0o660. key_check: of the key of what goes to disk; none: that is not encrypted. "
     "Make the segment /dev/shm/name; it appears complete or not at all."},
    {"segment_inspect", segment_inspect, METH_O, "segment_inspect(name)\n\nThe segment's identity, as a dict."},
    {"segment_sweep", segment_sweep, METH_O,
     "segment_sweep(name)\n\nRemove the segment unless it has members; True when it is removed."},
    {"segment_remove", segment_remove, METH_VARARGS,
     "segment_remove(name, home, force)\n\nRemove the segment if it names this directory, and has no members or `force`."},
    {"key_check", key_check, METH_O,
     "key_check(key)\n\n16 bytes by which a key of what goes to disk is known, and cannot be found."},
    {"boot_id", boot_id, METH_NOARGS, "The kernel's id of this boot, 16 bytes."},
    {"filesystem_type", filesystem_type, METH_O, "filesystem_type(fd)\n\nf_type of fstatfs(2)."},
    {NULL, NULL, 0, NULL},
};

int shmq_py_add_segment(PyObject *module) { return PyModule_AddFunctions(module, functions); }
