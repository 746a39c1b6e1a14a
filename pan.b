	switch (t->back) {
	default: Uerror("bad return move");
	case  0: goto R999; /* nothing to undo */

		 /* PROC :init: */

	case 3: // STATE 11
		;
		now.classbit[1] = trpt->bup.ovals[10];
		now.held[2] = trpt->bup.ovals[9];
		now.ref[2] = trpt->bup.ovals[8];
		now.wgen[2] = trpt->bup.ovals[7];
		now.sgen[2] = trpt->bup.ovals[6];
		now.state[2] = trpt->bup.ovals[5];
		now.state[1] = trpt->bup.ovals[4];
		now.state[0] = trpt->bup.ovals[3];
		now.sclass[2] = trpt->bup.ovals[2];
		now.sclass[1] = trpt->bup.ovals[1];
		now.sclass[0] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 11);
		goto R999;

	case 4: // STATE 12
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;

	case 5: // STATE 13
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;

	case 6: // STATE 14
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;

	case 7: // STATE 15
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;

	case 8: // STATE 18
		;
		;
		delproc(0, now._nr_pr-1);
		;
		goto R999;
;
		;
		
	case 10: // STATE 21
		;
		((P3 *)_this)->i = trpt->bup.oval;
		;
		goto R999;
;
		;
		;
		;
		;
		;
		
	case 14: // STATE 25
		;
		((P3 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 15: // STATE 31
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC holder */

	case 16: // STATE 2
		;
		now.locked = trpt->bup.oval;
		;
		goto R999;

	case 17: // STATE 4
		;
		((P2 *)_this)->c = trpt->bup.oval;
		;
		goto R999;

	case 18: // STATE 5
		;
	/* 0 */	((P2 *)_this)->c = trpt->bup.oval;
		;
		;
		goto R999;

	case 19: // STATE 8
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 21: // STATE 13
		;
		now.died = trpt->bup.oval;
		;
		goto R999;

	case 22: // STATE 26
		;
		((P2 *)_this)->i = trpt->bup.ovals[1];
		now.state[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 23: // STATE 26
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 24: // STATE 26
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 25: // STATE 32
		;
		now.classbit[ Index(((P2 *)_this)->c, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 26: // STATE 34
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 27: // STATE 36
		goto R999;

	case 28: // STATE 40
		;
		now.class = trpt->bup.oval;
		;
		goto R999;

	case 29: // STATE 42
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 30: // STATE 44
		goto R999;

	case 31: // STATE 48
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;

	case 32: // STATE 50
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 33: // STATE 52
		goto R999;
;
		;
		
	case 35: // STATE 59
		;
		now.foreign = trpt->bup.oval;
		;
		goto R999;

	case 36: // STATE 63
		;
		((P2 *)_this)->nc = trpt->bup.oval;
		;
		goto R999;

	case 37: // STATE 64
		;
		((P2 *)_this)->nc = trpt->bup.oval;
		;
		goto R999;

	case 38: // STATE 72
		;
		((P2 *)_this)->g = trpt->bup.ovals[5];
		((P2 *)_this)->g = trpt->bup.ovals[4];
		((P2 *)_this)->g = trpt->bup.ovals[3];
		((P2 *)_this)->g = trpt->bup.ovals[2];
		((P2 *)_this)->g = trpt->bup.ovals[1];
		((P2 *)_this)->g = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 6);
		goto R999;

	case 39: // STATE 75
		;
		now.held[ Index(( (((((P2 *)_this)->nc==2)&&(0==1))) ? (2) : (0) ), 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 40: // STATE 84
		;
		((P2 *)_this)->i = trpt->bup.ovals[2];
		((P2 *)_this)->making = trpt->bup.ovals[1];
		now.held[1] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 41: // STATE 84
		;
		((P2 *)_this)->i = trpt->bup.ovals[1];
		((P2 *)_this)->making = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;
;
		;
		
	case 43: // STATE 88
		;
		now.ref[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[1];
		now.wgen[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 44: // STATE 92
		;
		now.state[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[2];
		now.sclass[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[1];
		now.sgen[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 45: // STATE 94
		;
		now.died = trpt->bup.oval;
		;
		goto R999;

	case 46: // STATE 100
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 47: // STATE 100
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 48: // STATE 106
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;

	case 49: // STATE 108
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 50: // STATE 110
		goto R999;

	case 51: // STATE 115
		;
		((P2 *)_this)->making = trpt->bup.ovals[1];
		now.class = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 52: // STATE 117
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 53: // STATE 119
		goto R999;

	case 54: // STATE 123
		;
		now.classbit[ Index(((P2 *)_this)->nc, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 55: // STATE 125
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;
;
		;
		;
		;
		
	case 58: // STATE 128
		;
		now.state[ Index(((P2 *)_this)->i, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 59: // STATE 129
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 61: // STATE 131
		;
		now.classbit[ Index(((P2 *)_this)->c, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 62: // STATE 139
		;
		((P2 *)_this)->i = trpt->bup.oval;
		;
		goto R999;

	case 63: // STATE 147
		;
		((P2 *)_this)->rounds = trpt->bup.ovals[1];
		now.locked = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;
;
		;
		
	case 65: // STATE 155
		;
	/* 0 */	((P2 *)_this)->making = trpt->bup.oval;
		;
		;
		goto R999;

	case 66: // STATE 157
		;
		now.held[ Index(( (((((P2 *)_this)->nc==2)&&(0==1))) ? (2) : (0) ), 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 67: // STATE 170
		;
		((P2 *)_this)->rounds = trpt->bup.ovals[3];
		now.locked = trpt->bup.ovals[2];
		((P2 *)_this)->making = trpt->bup.ovals[1];
		now.held[1] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 4);
		goto R999;

	case 68: // STATE 170
		;
		((P2 *)_this)->rounds = trpt->bup.ovals[2];
		now.locked = trpt->bup.ovals[1];
		((P2 *)_this)->making = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 69: // STATE 170
		;
		((P2 *)_this)->rounds = trpt->bup.ovals[1];
		now.locked = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;
;
		;
		
	case 71: // STATE 178
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC taker */

	case 72: // STATE 1
		;
	/* 0 */	((P1 *)_this)->c = trpt->bup.oval;
		;
		;
		goto R999;
;
		;
		
	case 74: // STATE 11
		;
		((P1 *)_this)->bits = trpt->bup.oval;
		;
		goto R999;

	case 75: // STATE 12
		;
	/* 0 */	((P1 *)_this)->bits = trpt->bup.oval;
		;
		;
		goto R999;

	case 76: // STATE 15
		;
		((P1 *)_this)->i = trpt->bup.ovals[1];
	/* 0 */	((P1 *)_this)->bits = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 77: // STATE 17
		;
		((P1 *)_this)->i = trpt->bup.ovals[1];
	/* 0 */	((P1 *)_this)->bits = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 78: // STATE 19
		;
		((P1 *)_this)->i = trpt->bup.ovals[1];
	/* 0 */	((P1 *)_this)->bits = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 79: // STATE 23
		;
		now.freebits = trpt->bup.ovals[1];
		((P1 *)_this)->had = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 80: // STATE 25
		;
		now.died = trpt->bup.oval;
		;
		goto R999;
;
		
	case 81: // STATE 27
		goto R999;

	case 82: // STATE 31
		;
	/* 0 */	((P1 *)_this)->had = trpt->bup.oval;
		;
		;
		goto R999;

	case 83: // STATE 38
		;
		((P1 *)_this)->st = trpt->bup.ovals[2];
		((P1 *)_this)->sc = trpt->bup.ovals[1];
		((P1 *)_this)->g = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 84: // STATE 40
		;
	/* 0 */	((P1 *)_this)->c = trpt->bup.oval;
		;
		;
		goto R999;

	case 85: // STATE 45
		;
	/* 1 */	((P1 *)_this)->sc = trpt->bup.ovals[1];
	/* 0 */	((P1 *)_this)->st = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 86: // STATE 52
		;
		now.state[ Index(((P1 *)_this)->i, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 87: // STATE 54
		;
		now.held[ Index(( (((((P1 *)_this)->c==2)&&(((P1 *)_this)->i==1))) ? (2) : (((P1 *)_this)->i) ), 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 88: // STATE 57
		;
		now.held[1] = trpt->bup.oval;
		;
		goto R999;
;
		
	case 89: // STATE 60
		goto R999;

	case 90: // STATE 68
		;
		now.ref[ Index(((P1 *)_this)->i, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 91: // STATE 70
		;
		((P1 *)_this)->dc = trpt->bup.oval;
		;
		goto R999;

	case 92: // STATE 72
		;
		((P1 *)_this)->di = trpt->bup.oval;
		;
		goto R999;

	case 93: // STATE 74
		;
		((P1 *)_this)->di = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 95: // STATE 87
		;
		now.wgen[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[2];
		now.ref[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.drops = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 96: // STATE 87
		;
		now.wgen[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.ref[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 97: // STATE 89
		;
		now.held[ Index(( (((((P1 *)_this)->dc==2)&&(((P1 *)_this)->di==1))) ? (2) : (((P1 *)_this)->di) ), 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 98: // STATE 92
		;
		now.held[1] = trpt->bup.oval;
		;
		goto R999;
;
		
	case 99: // STATE 95
		goto R999;

	case 100: // STATE 104
		;
		now.sgen[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.state[ Index(((P1 *)_this)->di, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 101: // STATE 106
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 103: // STATE 108
		;
		now.classbit[ Index(((P1 *)_this)->dc, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 104: // STATE 119
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;

	case 105: // STATE 120
		;
		((P1 *)_this)->dc = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 107: // STATE 122
		;
		now.classbit[ Index(((P1 *)_this)->dc, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 108: // STATE 127
		;
		now.classbit[ Index(((P1 *)_this)->c, 3) ] = trpt->bup.oval;
		;
		goto R999;
;
		;
		;
		;
		
	case 111: // STATE 130
		;
		now.classbit[ Index(((P1 *)_this)->c, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 112: // STATE 138
		;
		p_restor(II);
		;
		;
		goto R999;

		 /* PROC dropper */

	case 113: // STATE 1
		;
		((P0 *)_this)->dc = trpt->bup.oval;
		;
		goto R999;

	case 114: // STATE 3
		;
		((P0 *)_this)->di = trpt->bup.oval;
		;
		goto R999;

	case 115: // STATE 5
		;
		((P0 *)_this)->di = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 117: // STATE 18
		;
		now.wgen[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[2];
		now.ref[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.drops = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 118: // STATE 18
		;
		now.wgen[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.ref[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 119: // STATE 20
		;
		now.held[ Index(( (((((P0 *)_this)->dc==2)&&(((P0 *)_this)->di==1))) ? (2) : (((P0 *)_this)->di) ), 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 120: // STATE 23
		;
		now.held[1] = trpt->bup.oval;
		;
		goto R999;
;
		
	case 121: // STATE 26
		goto R999;

	case 122: // STATE 35
		;
		now.sgen[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[1];
		now.state[ Index(((P0 *)_this)->di, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 123: // STATE 37
		;
		now.freebits = trpt->bup.oval;
		;
		goto R999;
;
		;
		
	case 125: // STATE 39
		;
		now.classbit[ Index(((P0 *)_this)->dc, 3) ] = trpt->bup.oval;
		;
		goto R999;

	case 126: // STATE 46
		;
		p_restor(II);
		;
		;
		goto R999;
	}

