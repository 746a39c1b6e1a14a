/* A member deletes its broker: what has no name any more is gone, and another user's stays. */
#include "scratch_segment.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
}

static void end(void) {
    scratch_detach(m);
    scratch_remove();
}

TEST(a_broker_that_others_use_is_deleted_by_force_only) {
    begin();
    shmq_member *other = scratch_attach();
    CHECK_EQUAL(shmq_member_delete(m, false), SHMQ_IN_USE);
    CHECK(scratch_exists() && !shmq_member_gone(other));
    CHECK_EQUAL(shmq_member_delete(m, true), SHMQ_OK);
    CHECK(!scratch_exists() && shmq_member_gone(other));
    scratch_detach(other);
    end();
}

TEST(one_whose_name_is_gone_already_is_deleted_as_well) {
    begin();
    scratch_remove();
    CHECK(!scratch_exists());
    CHECK_EQUAL(shmq_member_delete(m, false), SHMQ_OK);
    CHECK(shmq_member_gone(m));
    end();
}

/* Only root can become another user; elsewhere there is nobody whose broker it could be. */
TEST(the_broker_of_another_user_is_not_deleted) {
    if (geteuid() != 0) {
        return;
    }
    begin();
    CHECK(setegid(65534) == 0 && seteuid(65534) == 0);
    shmq_status status = shmq_member_delete(m, true);
    char trail[400];
    snprintf(trail, sizeof trail, "%s", shmq_trail());
    CHECK(seteuid(0) == 0 && setegid(0) == 0);
    CHECK_EQUAL(status, SHMQ_DENIED);
    CHECK(strstr(trail, "is another user's\nowner uid 0, and we are uid 65534") != NULL);
    CHECK(scratch_exists() && !shmq_member_gone(m));
    end();
}

int main(void) { return run_tests(); }
