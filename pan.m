#define rand	pan_rand
#define pthread_equal(a,b)	((a)==(b))
#if defined(HAS_CODE) && defined(VERBOSE)
	#ifdef BFS_PAR
		bfs_printf("Pr: %d Tr: %d\n", II, t->forw);
	#else
		cpu_printf("Pr: %d Tr: %d\n", II, t->forw);
	#endif
#endif
	switch (t->forw) {
	default: Uerror("bad forward move");
	case 0:	/* if without executable clauses */
		continue;
	case 1: /* generic 'goto' or 'skip' */
		IfNotBlocked
		_m = 3; goto P999;
	case 2: /* generic 'else' */
		IfNotBlocked
		if (trpt->o_pm&1) continue;
		_m = 3; goto P999;

		 /* PROC :init: */
	case 3: // STATE 1 - /work/main/tests/models/slab.pml:291 - [sclass[0] = 1] (0:12:11 - 1)
		IfNotBlocked
		reached[3][1] = 1;
		(trpt+1)->bup.ovals = grab_ints(11);
		(trpt+1)->bup.ovals[0] = ((int)now.sclass[0]);
		now.sclass[0] = 1;
#ifdef VAR_RANGES
		logval("sclass[0]", ((int)now.sclass[0]));
#endif
		;
		/* merge: sclass[1] = 1(12, 2, 12) */
		reached[3][2] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.sclass[1]);
		now.sclass[1] = 1;
#ifdef VAR_RANGES
		logval("sclass[1]", ((int)now.sclass[1]));
#endif
		;
		/* merge: sclass[2] = 1(12, 3, 12) */
		reached[3][3] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.sclass[2]);
		now.sclass[2] = 1;
#ifdef VAR_RANGES
		logval("sclass[2]", ((int)now.sclass[2]));
#endif
		;
		/* merge: state[0] = 1(12, 4, 12) */
		reached[3][4] = 1;
		(trpt+1)->bup.ovals[3] = ((int)now.state[0]);
		now.state[0] = 1;
#ifdef VAR_RANGES
		logval("state[0]", ((int)now.state[0]));
#endif
		;
		/* merge: state[1] = 1(12, 5, 12) */
		reached[3][5] = 1;
		(trpt+1)->bup.ovals[4] = ((int)now.state[1]);
		now.state[1] = 1;
#ifdef VAR_RANGES
		logval("state[1]", ((int)now.state[1]));
#endif
		;
		/* merge: state[2] = 2(12, 6, 12) */
		reached[3][6] = 1;
		(trpt+1)->bup.ovals[5] = ((int)now.state[2]);
		now.state[2] = 2;
#ifdef VAR_RANGES
		logval("state[2]", ((int)now.state[2]));
#endif
		;
		/* merge: sgen[2] = 1(12, 7, 12) */
		reached[3][7] = 1;
		(trpt+1)->bup.ovals[6] = ((int)now.sgen[2]);
		now.sgen[2] = 1;
#ifdef VAR_RANGES
		logval("sgen[2]", ((int)now.sgen[2]));
#endif
		;
		/* merge: wgen[2] = 1(12, 8, 12) */
		reached[3][8] = 1;
		(trpt+1)->bup.ovals[7] = ((int)now.wgen[2]);
		now.wgen[2] = 1;
#ifdef VAR_RANGES
		logval("wgen[2]", ((int)now.wgen[2]));
#endif
		;
		/* merge: ref[2] = 1(12, 9, 12) */
		reached[3][9] = 1;
		(trpt+1)->bup.ovals[8] = ((int)now.ref[2]);
		now.ref[2] = 1;
#ifdef VAR_RANGES
		logval("ref[2]", ((int)now.ref[2]));
#endif
		;
		/* merge: held[2] = 1(12, 10, 12) */
		reached[3][10] = 1;
		(trpt+1)->bup.ovals[9] = ((int)now.held[2]);
		now.held[2] = 1;
#ifdef VAR_RANGES
		logval("held[2]", ((int)now.held[2]));
#endif
		;
		/* merge: classbit[1] = 1(12, 11, 12) */
		reached[3][11] = 1;
		(trpt+1)->bup.ovals[10] = ((int)now.classbit[1]);
		now.classbit[1] = 1;
#ifdef VAR_RANGES
		logval("classbit[1]", ((int)now.classbit[1]));
#endif
		;
		_m = 3; goto P999; /* 10 */
	case 4: // STATE 12 - /work/main/tests/models/slab.pml:295 - [(run dropper())] (0:0:0 - 1)
		IfNotBlocked
		reached[3][12] = 1;
		if (!(addproc(II, 1, 0, 0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 5: // STATE 13 - /work/main/tests/models/slab.pml:296 - [(run dropper())] (0:0:0 - 1)
		IfNotBlocked
		reached[3][13] = 1;
		if (!(addproc(II, 1, 0, 0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 6: // STATE 14 - /work/main/tests/models/slab.pml:301 - [(run taker(1))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][14] = 1;
		if (!(addproc(II, 1, 1, 1)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 7: // STATE 15 - /work/main/tests/models/slab.pml:302 - [(run taker(2))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][15] = 1;
		if (!(addproc(II, 1, 1, 2)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 8: // STATE 18 - /work/main/tests/models/slab.pml:304 - [(run holder())] (0:0:0 - 1)
		IfNotBlocked
		reached[3][18] = 1;
		if (!(addproc(II, 1, 2, 0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 9: // STATE 20 - /work/main/tests/models/slab.pml:306 - [(timeout)] (0:0:0 - 1)
		IfNotBlocked
		reached[3][20] = 1;
		if (!(((trpt->tau)&1)))
			continue;
		_m = 1; goto P999; /* 0 */
	case 10: // STATE 21 - /work/main/tests/models/slab.pml:307 - [i = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[3][21] = 1;
		(trpt+1)->bup.oval = ((int)((P3 *)_this)->i);
		((P3 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval(":init::i", ((int)((P3 *)_this)->i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 11: // STATE 22 - /work/main/tests/models/slab.pml:309 - [(((((class!=0)&&!(foreign))&&!(died))&&(i<( ((class==1)) -> (3) : (2) ))))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][22] = 1;
		if (!(((((((int)now.class)!=0)&& !(((int)now.foreign)))&& !(((int)now.died)))&&(((int)((P3 *)_this)->i)<( ((((int)now.class)==1)) ? (3) : (2) )))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 12: // STATE 23 - /work/main/tests/models/slab.pml:310 - [assert((state[i]!=3))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][23] = 1;
		spin_assert((((int)now.state[ Index(((int)((P3 *)_this)->i), 3) ])!=3), "(state[i]!=3)", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 13: // STATE 24 - /work/main/tests/models/slab.pml:311 - [assert(((state[i]!=1)||(classbit[class]&&((freebits>>i)&1))))] (0:0:0 - 1)
		IfNotBlocked
		reached[3][24] = 1;
		spin_assert(((((int)now.state[ Index(((int)((P3 *)_this)->i), 3) ])!=1)||(((int)now.classbit[ Index(((int)now.class), 3) ])&&((((int)now.freebits)>>((int)((P3 *)_this)->i))&1))), "((state[i]!=1)||(classbit[class]&&((freebits>>i)&1)))", II, tt, t);
		_m = 3; goto P999; /* 0 */
	case 14: // STATE 25 - /work/main/tests/models/slab.pml:312 - [i = (i+1)] (0:0:1 - 1)
		IfNotBlocked
		reached[3][25] = 1;
		(trpt+1)->bup.oval = ((int)((P3 *)_this)->i);
		((P3 *)_this)->i = (((int)((P3 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval(":init::i", ((int)((P3 *)_this)->i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 15: // STATE 31 - /work/main/tests/models/slab.pml:315 - [-end-] (0:0:0 - 3)
		IfNotBlocked
		reached[3][31] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC holder */
	case 16: // STATE 1 - /work/main/tests/models/slab.pml:204 - [(!(locked))] (4:0:1 - 1)
		IfNotBlocked
		reached[2][1] = 1;
		if (!( !(((int)now.locked))))
			continue;
		/* merge: locked = 1(0, 2, 4) */
		reached[2][2] = 1;
		(trpt+1)->bup.oval = ((int)now.locked);
		now.locked = 1;
#ifdef VAR_RANGES
		logval("locked", ((int)now.locked));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 17: // STATE 4 - /work/main/tests/models/slab.pml:205 - [c = class] (0:0:1 - 1)
		IfNotBlocked
		reached[2][4] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->c);
		((P2 *)_this)->c = ((int)now.class);
#ifdef VAR_RANGES
		logval("holder:c", ((int)((P2 *)_this)->c));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 18: // STATE 5 - /work/main/tests/models/slab.pml:207 - [(((c==0)||foreign))] (0:0:1 - 1)
		IfNotBlocked
		reached[2][5] = 1;
		if (!(((((int)((P2 *)_this)->c)==0)||((int)now.foreign))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: c */  (trpt+1)->bup.oval = ((P2 *)_this)->c;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P2 *)_this)->c = 0;
		_m = 3; goto P999; /* 0 */
	case 19: // STATE 8 - /work/main/tests/models/slab.pml:208 - [i = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[2][8] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 20: // STATE 11 - /work/main/tests/models/slab.pml:211 - [((i<( ((c==1)) -> (3) : (2) )))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][11] = 1;
		if (!((((int)((P2 *)_this)->i)<( ((((int)((P2 *)_this)->c)==1)) ? (3) : (2) ))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 21: // STATE 12 - /work/main/tests/models/slab.pml:214 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][12] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 13, 171) */
		reached[2][13] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 14, 171) */
		reached[2][14] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 22: // STATE 18 - /work/main/tests/models/slab.pml:217 - [((state[i]==1))] (29:0:2 - 1)
		IfNotBlocked
		reached[2][18] = 1;
		if (!((((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ])==1)))
			continue;
		/* merge: state[i] = 3(29, 19, 29) */
		reached[2][19] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.state[ Index(((P2 *)_this)->i, 3) ] = 3;
#ifdef VAR_RANGES
		logval("state[holder:i]", ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		/* merge: .(goto)(29, 24, 29) */
		reached[2][24] = 1;
		;
		/* merge: i = (i+1)(29, 26, 29) */
		reached[2][26] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 30, 29) */
		reached[2][30] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 23: // STATE 24 - /work/main/tests/models/slab.pml:226 - [.(goto)] (0:29:1 - 2)
		IfNotBlocked
		reached[2][24] = 1;
		;
		/* merge: i = (i+1)(29, 26, 29) */
		reached[2][26] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 30, 29) */
		reached[2][30] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 24: // STATE 20 - /work/main/tests/models/slab.pml:218 - [((state[i]==3))] (29:0:1 - 1)
		IfNotBlocked
		reached[2][20] = 1;
		if (!((((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ])==3)))
			continue;
		/* merge: .(goto)(29, 24, 29) */
		reached[2][24] = 1;
		;
		/* merge: i = (i+1)(29, 26, 29) */
		reached[2][26] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 30, 29) */
		reached[2][30] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 25: // STATE 32 - /work/main/tests/models/slab.pml:230 - [classbit[c] = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[2][32] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P2 *)_this)->c), 3) ]);
		now.classbit[ Index(((P2 *)_this)->c, 3) ] = 0;
#ifdef VAR_RANGES
		logval("classbit[holder:c]", ((int)now.classbit[ Index(((int)((P2 *)_this)->c), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 26: // STATE 33 - /work/main/tests/models/slab.pml:230 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][33] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 34, 171) */
		reached[2][34] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 35, 171) */
		reached[2][35] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 27: // STATE 36 - /work/main/tests/models/slab.pml:230 - [(1)] (47:0:0 - 1)
		IfNotBlocked
		reached[2][36] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 38, 47) */
		reached[2][38] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 28: // STATE 40 - /work/main/tests/models/slab.pml:231 - [class = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[2][40] = 1;
		(trpt+1)->bup.oval = ((int)now.class);
		now.class = 0;
#ifdef VAR_RANGES
		logval("class", ((int)now.class));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 29: // STATE 41 - /work/main/tests/models/slab.pml:231 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][41] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 42, 171) */
		reached[2][42] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 43, 171) */
		reached[2][43] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 30: // STATE 44 - /work/main/tests/models/slab.pml:231 - [(1)] (55:0:0 - 1)
		IfNotBlocked
		reached[2][44] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 46, 55) */
		reached[2][46] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 31: // STATE 48 - /work/main/tests/models/slab.pml:232 - [freebits = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[2][48] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = 0;
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 32: // STATE 49 - /work/main/tests/models/slab.pml:232 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][49] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 50, 171) */
		reached[2][50] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 51, 171) */
		reached[2][51] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 33: // STATE 52 - /work/main/tests/models/slab.pml:232 - [(1)] (65:0:0 - 1)
		IfNotBlocked
		reached[2][52] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 54, 65) */
		reached[2][54] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 34: // STATE 56 - /work/main/tests/models/slab.pml:235 - [(foreign)] (0:0:0 - 1)
		IfNotBlocked
		reached[2][56] = 1;
		if (!(((int)now.foreign)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 35: // STATE 58 - /work/main/tests/models/slab.pml:236 - [(!(foreign))] (148:0:1 - 1)
		IfNotBlocked
		reached[2][58] = 1;
		if (!( !(((int)now.foreign))))
			continue;
		/* merge: foreign = 1(148, 59, 148) */
		reached[2][59] = 1;
		(trpt+1)->bup.oval = ((int)now.foreign);
		now.foreign = 1;
#ifdef VAR_RANGES
		logval("foreign", ((int)now.foreign));
#endif
		;
		/* merge: assert(((!(held[0])&&!(held[1]))&&!(held[2])))(148, 60, 148) */
		reached[2][60] = 1;
		spin_assert((( !(((int)now.held[0]))&& !(((int)now.held[1])))&& !(((int)now.held[2]))), "(( !(held[0])&& !(held[1]))&& !(held[2]))", II, tt, t);
		/* merge: goto unlock(148, 61, 148) */
		reached[2][61] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 36: // STATE 63 - /work/main/tests/models/slab.pml:237 - [nc = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[2][63] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->nc);
		((P2 *)_this)->nc = 1;
#ifdef VAR_RANGES
		logval("holder:nc", ((int)((P2 *)_this)->nc));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 37: // STATE 64 - /work/main/tests/models/slab.pml:238 - [nc = 2] (0:0:1 - 1)
		IfNotBlocked
		reached[2][64] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->nc);
		((P2 *)_this)->nc = 2;
#ifdef VAR_RANGES
		logval("holder:nc", ((int)((P2 *)_this)->nc));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 38: // STATE 67 - /work/main/tests/models/slab.pml:241 - [g = wgen[0]] (0:85:6 - 1)
		IfNotBlocked
		reached[2][67] = 1;
		(trpt+1)->bup.ovals = grab_ints(6);
		(trpt+1)->bup.ovals[0] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ((int)now.wgen[0]);
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		/* merge: g = ( ((wgen[1]>g)) -> (wgen[1]) : (g) )(85, 68, 85) */
		reached[2][68] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ( ((((int)now.wgen[1])>((int)((P2 *)_this)->g))) ? (((int)now.wgen[1])) : (((int)((P2 *)_this)->g)) );
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		/* merge: g = ( ((wgen[2]>g)) -> (wgen[2]) : (g) )(85, 69, 85) */
		reached[2][69] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ( ((((int)now.wgen[2])>((int)((P2 *)_this)->g))) ? (((int)now.wgen[2])) : (((int)((P2 *)_this)->g)) );
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		/* merge: g = ( ((sgen[0]>g)) -> (sgen[0]) : (g) )(85, 70, 85) */
		reached[2][70] = 1;
		(trpt+1)->bup.ovals[3] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ( ((((int)now.sgen[0])>((int)((P2 *)_this)->g))) ? (((int)now.sgen[0])) : (((int)((P2 *)_this)->g)) );
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		/* merge: g = ( ((sgen[1]>g)) -> (sgen[1]) : (g) )(85, 71, 85) */
		reached[2][71] = 1;
		(trpt+1)->bup.ovals[4] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ( ((((int)now.sgen[1])>((int)((P2 *)_this)->g))) ? (((int)now.sgen[1])) : (((int)((P2 *)_this)->g)) );
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		/* merge: g = ( ((sgen[2]>g)) -> (sgen[2]) : (g) )(85, 72, 85) */
		reached[2][72] = 1;
		(trpt+1)->bup.ovals[5] = ((int)((P2 *)_this)->g);
		((P2 *)_this)->g = ( ((((int)now.sgen[2])>((int)((P2 *)_this)->g))) ? (((int)now.sgen[2])) : (((int)((P2 *)_this)->g)) );
#ifdef VAR_RANGES
		logval("holder:g", ((int)((P2 *)_this)->g));
#endif
		;
		_m = 3; goto P999; /* 5 */
	case 39: // STATE 74 - /work/main/tests/models/slab.pml:58 - [assert((held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=1))] (0:80:1 - 1)
		IfNotBlocked
		reached[2][74] = 1;
		spin_assert((((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ])!=1), "(held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=1)", II, tt, t);
		/* merge: held[( (((nc==2)&&(0==1))) ? (2) : (0) )] = 1(80, 75, 80) */
		reached[2][75] = 1;
		(trpt+1)->bup.oval = ((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ]);
		now.held[ Index(( (((((P2 *)_this)->nc==2)&&(0==1))) ? (2) : (0) ), 3) ] = 1;
#ifdef VAR_RANGES
		logval("held[( (((holder:nc==2)&&(0==1))) ? (2) : (0) )]", ((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 40: // STATE 76 - /work/main/tests/models/slab.pml:61 - [(((nc==2)&&(0==0)))] (103:0:3 - 1)
		IfNotBlocked
		reached[2][76] = 1;
		if (!(((((int)((P2 *)_this)->nc)==2)&&(0==0))))
			continue;
		/* merge: assert((held[1]!=1))(103, 77, 103) */
		reached[2][77] = 1;
		spin_assert((((int)now.held[1])!=1), "(held[1]!=1)", II, tt, t);
		/* merge: held[1] = 1(103, 78, 103) */
		reached[2][78] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)now.held[1]);
		now.held[1] = 1;
#ifdef VAR_RANGES
		logval("held[1]", ((int)now.held[1]));
#endif
		;
		/* merge: .(goto)(103, 81, 103) */
		reached[2][81] = 1;
		;
		/* merge: making = 1(103, 83, 103) */
		reached[2][83] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->making);
		((P2 *)_this)->making = 1;
#ifdef VAR_RANGES
		logval("holder:making", ((int)((P2 *)_this)->making));
#endif
		;
		/* merge: i = 0(103, 84, 103) */
		reached[2][84] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 104, 103) */
		reached[2][104] = 1;
		;
		_m = 3; goto P999; /* 6 */
	case 41: // STATE 83 - /work/main/tests/models/slab.pml:251 - [making = 1] (0:103:2 - 3)
		IfNotBlocked
		reached[2][83] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)((P2 *)_this)->making);
		((P2 *)_this)->making = 1;
#ifdef VAR_RANGES
		logval("holder:making", ((int)((P2 *)_this)->making));
#endif
		;
		/* merge: i = 0(103, 84, 103) */
		reached[2][84] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 104, 103) */
		reached[2][104] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 42: // STATE 86 - /work/main/tests/models/slab.pml:253 - [((i<( ((nc==1)) -> (3) : (2) )))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][86] = 1;
		if (!((((int)((P2 *)_this)->i)<( ((((int)((P2 *)_this)->nc)==1)) ? (3) : (2) ))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 43: // STATE 87 - /work/main/tests/models/slab.pml:257 - [wgen[i] = (g+1)] (0:99:2 - 1)
		IfNotBlocked
		reached[2][87] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.wgen[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.wgen[ Index(((P2 *)_this)->i, 3) ] = (((int)((P2 *)_this)->g)+1);
#ifdef VAR_RANGES
		logval("wgen[holder:i]", ((int)now.wgen[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		/* merge: ref[i] = (i==0)(99, 88, 99) */
		reached[2][88] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.ref[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.ref[ Index(((P2 *)_this)->i, 3) ] = (((int)((P2 *)_this)->i)==0);
#ifdef VAR_RANGES
		logval("ref[holder:i]", ((int)now.ref[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 44: // STATE 90 - /work/main/tests/models/slab.pml:258 - [sgen[i] = (g+1)] (0:97:3 - 1)
		IfNotBlocked
		reached[2][90] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)now.sgen[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.sgen[ Index(((P2 *)_this)->i, 3) ] = (((int)((P2 *)_this)->g)+1);
#ifdef VAR_RANGES
		logval("sgen[holder:i]", ((int)now.sgen[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		/* merge: sclass[i] = nc(97, 91, 97) */
		reached[2][91] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.sclass[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.sclass[ Index(((P2 *)_this)->i, 3) ] = ((int)((P2 *)_this)->nc);
#ifdef VAR_RANGES
		logval("sclass[holder:i]", ((int)now.sclass[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		/* merge: state[i] = ( ((i==0)) -> (2) : (1) )(97, 92, 97) */
		reached[2][92] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.state[ Index(((P2 *)_this)->i, 3) ] = ( ((((int)((P2 *)_this)->i)==0)) ? (2) : (1) );
#ifdef VAR_RANGES
		logval("state[holder:i]", ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 2 */
	case 45: // STATE 93 - /work/main/tests/models/slab.pml:258 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][93] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 94, 171) */
		reached[2][94] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 95, 171) */
		reached[2][95] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 46: // STATE 98 - /work/main/tests/models/slab.pml:258 - [.(goto)] (0:103:1 - 1)
		IfNotBlocked
		reached[2][98] = 1;
		;
		/* merge: i = (i+1)(103, 100, 103) */
		reached[2][100] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 104, 103) */
		reached[2][104] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 47: // STATE 96 - /work/main/tests/models/slab.pml:258 - [(1)] (103:0:1 - 1)
		IfNotBlocked
		reached[2][96] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(103, 98, 103) */
		reached[2][98] = 1;
		;
		/* merge: i = (i+1)(103, 100, 103) */
		reached[2][100] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 104, 103) */
		reached[2][104] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 48: // STATE 106 - /work/main/tests/models/slab.pml:262 - [freebits = (( ((nc==1)) -> (7) : (3) )-1)] (0:0:1 - 1)
		IfNotBlocked
		reached[2][106] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = (( ((((int)((P2 *)_this)->nc)==1)) ? (7) : (3) )-1);
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 49: // STATE 107 - /work/main/tests/models/slab.pml:262 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][107] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 108, 171) */
		reached[2][108] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 109, 171) */
		reached[2][109] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 50: // STATE 110 - /work/main/tests/models/slab.pml:262 - [(1)] (122:0:0 - 1)
		IfNotBlocked
		reached[2][110] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 112, 122) */
		reached[2][112] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 51: // STATE 114 - /work/main/tests/models/slab.pml:263 - [class = nc] (0:120:2 - 1)
		IfNotBlocked
		reached[2][114] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.class);
		now.class = ((int)((P2 *)_this)->nc);
#ifdef VAR_RANGES
		logval("class", ((int)now.class));
#endif
		;
		/* merge: making = 0(120, 115, 120) */
		reached[2][115] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->making);
		((P2 *)_this)->making = 0;
#ifdef VAR_RANGES
		logval("holder:making", ((int)((P2 *)_this)->making));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 52: // STATE 116 - /work/main/tests/models/slab.pml:263 - [(!(died))] (171:0:1 - 1)
		IfNotBlocked
		reached[2][116] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(171, 117, 171) */
		reached[2][117] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto dead(171, 118, 171) */
		reached[2][118] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 53: // STATE 119 - /work/main/tests/models/slab.pml:263 - [(1)] (123:0:0 - 1)
		IfNotBlocked
		reached[2][119] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 121, 123) */
		reached[2][121] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 54: // STATE 123 - /work/main/tests/models/slab.pml:264 - [classbit[nc] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[2][123] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P2 *)_this)->nc), 3) ]);
		now.classbit[ Index(((P2 *)_this)->nc, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[holder:nc]", ((int)now.classbit[ Index(((int)((P2 *)_this)->nc), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 55: // STATE 125 - /work/main/tests/models/slab.pml:187 - [i = 0] (0:0:1 - 1)
		IfNotBlocked
		reached[2][125] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 56: // STATE 126 - /work/main/tests/models/slab.pml:189 - [((i<( ((c==1)) -> (3) : (2) )))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][126] = 1;
		if (!((((int)((P2 *)_this)->i)<( ((((int)((P2 *)_this)->c)==1)) ? (3) : (2) ))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 57: // STATE 127 - /work/main/tests/models/slab.pml:191 - [((state[i]==3))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][127] = 1;
		if (!((((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ])==3)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 58: // STATE 128 - /work/main/tests/models/slab.pml:191 - [state[i] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[2][128] = 1;
		(trpt+1)->bup.oval = ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]);
		now.state[ Index(((P2 *)_this)->i, 3) ] = 1;
#ifdef VAR_RANGES
		logval("state[holder:i]", ((int)now.state[ Index(((int)((P2 *)_this)->i), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 59: // STATE 129 - /work/main/tests/models/slab.pml:67 - [freebits = (freebits|(1<<i))] (0:0:1 - 1)
		IfNotBlocked
		reached[2][129] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = (((int)now.freebits)|(1<<((int)((P2 *)_this)->i)));
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 60: // STATE 130 - /work/main/tests/models/slab.pml:69 - [(!(classbit[c]))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][130] = 1;
		if (!( !(((int)now.classbit[ Index(((int)((P2 *)_this)->c), 3) ]))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 61: // STATE 131 - /work/main/tests/models/slab.pml:69 - [classbit[c] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[2][131] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P2 *)_this)->c), 3) ]);
		now.classbit[ Index(((P2 *)_this)->c, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[holder:c]", ((int)now.classbit[ Index(((int)((P2 *)_this)->c), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 62: // STATE 139 - /work/main/tests/models/slab.pml:194 - [i = (i+1)] (0:142:1 - 5)
		IfNotBlocked
		reached[2][139] = 1;
		(trpt+1)->bup.oval = ((int)((P2 *)_this)->i);
		((P2 *)_this)->i = (((int)((P2 *)_this)->i)+1);
#ifdef VAR_RANGES
		logval("holder:i", ((int)((P2 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 143, 142) */
		reached[2][143] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 63: // STATE 146 - /work/main/tests/models/slab.pml:269 - [locked = 0] (0:153:2 - 1)
		IfNotBlocked
		reached[2][146] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.locked);
		now.locked = 0;
#ifdef VAR_RANGES
		logval("locked", ((int)now.locked));
#endif
		;
		/* merge: rounds = (rounds+1)(153, 147, 153) */
		reached[2][147] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->rounds);
		((P2 *)_this)->rounds = (((int)((P2 *)_this)->rounds)+1);
#ifdef VAR_RANGES
		logval("holder:rounds", ((int)((P2 *)_this)->rounds));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 64: // STATE 149 - /work/main/tests/models/slab.pml:271 - [((rounds<1))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][149] = 1;
		if (!((((int)((P2 *)_this)->rounds)<1)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 65: // STATE 155 - /work/main/tests/models/slab.pml:276 - [(making)] (0:0:1 - 1)
		IfNotBlocked
		reached[2][155] = 1;
		if (!(((int)((P2 *)_this)->making)))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: making */  (trpt+1)->bup.oval = ((P2 *)_this)->making;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P2 *)_this)->making = 0;
		_m = 3; goto P999; /* 0 */
	case 66: // STATE 156 - /work/main/tests/models/slab.pml:58 - [assert((held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=0))] (0:162:1 - 1)
		IfNotBlocked
		reached[2][156] = 1;
		spin_assert((((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ])!=0), "(held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=0)", II, tt, t);
		/* merge: held[( (((nc==2)&&(0==1))) ? (2) : (0) )] = 0(162, 157, 162) */
		reached[2][157] = 1;
		(trpt+1)->bup.oval = ((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ]);
		now.held[ Index(( (((((P2 *)_this)->nc==2)&&(0==1))) ? (2) : (0) ), 3) ] = 0;
#ifdef VAR_RANGES
		logval("held[( (((holder:nc==2)&&(0==1))) ? (2) : (0) )]", ((int)now.held[ Index(( (((((int)((P2 *)_this)->nc)==2)&&(0==1))) ? (2) : (0) ), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 67: // STATE 158 - /work/main/tests/models/slab.pml:61 - [(((nc==2)&&(0==0)))] (175:0:4 - 1)
		IfNotBlocked
		reached[2][158] = 1;
		if (!(((((int)((P2 *)_this)->nc)==2)&&(0==0))))
			continue;
		/* merge: assert((held[1]!=0))(175, 159, 175) */
		reached[2][159] = 1;
		spin_assert((((int)now.held[1])!=0), "(held[1]!=0)", II, tt, t);
		/* merge: held[1] = 0(175, 160, 175) */
		reached[2][160] = 1;
		(trpt+1)->bup.ovals = grab_ints(4);
		(trpt+1)->bup.ovals[0] = ((int)now.held[1]);
		now.held[1] = 0;
#ifdef VAR_RANGES
		logval("held[1]", ((int)now.held[1]));
#endif
		;
		/* merge: .(goto)(175, 163, 175) */
		reached[2][163] = 1;
		;
		/* merge: making = 0(175, 165, 175) */
		reached[2][165] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->making);
		((P2 *)_this)->making = 0;
#ifdef VAR_RANGES
		logval("holder:making", ((int)((P2 *)_this)->making));
#endif
		;
		/* merge: .(goto)(175, 168, 175) */
		reached[2][168] = 1;
		;
		/* merge: locked = 0(175, 169, 175) */
		reached[2][169] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.locked);
		now.locked = 0;
#ifdef VAR_RANGES
		logval("locked", ((int)now.locked));
#endif
		;
		/* merge: rounds = (rounds+1)(175, 170, 175) */
		reached[2][170] = 1;
		(trpt+1)->bup.ovals[3] = ((int)((P2 *)_this)->rounds);
		((P2 *)_this)->rounds = (((int)((P2 *)_this)->rounds)+1);
#ifdef VAR_RANGES
		logval("holder:rounds", ((int)((P2 *)_this)->rounds));
#endif
		;
		_m = 3; goto P999; /* 7 */
	case 68: // STATE 165 - /work/main/tests/models/slab.pml:276 - [making = 0] (0:175:3 - 3)
		IfNotBlocked
		reached[2][165] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)((P2 *)_this)->making);
		((P2 *)_this)->making = 0;
#ifdef VAR_RANGES
		logval("holder:making", ((int)((P2 *)_this)->making));
#endif
		;
		/* merge: .(goto)(175, 168, 175) */
		reached[2][168] = 1;
		;
		/* merge: locked = 0(175, 169, 175) */
		reached[2][169] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.locked);
		now.locked = 0;
#ifdef VAR_RANGES
		logval("locked", ((int)now.locked));
#endif
		;
		/* merge: rounds = (rounds+1)(175, 170, 175) */
		reached[2][170] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P2 *)_this)->rounds);
		((P2 *)_this)->rounds = (((int)((P2 *)_this)->rounds)+1);
#ifdef VAR_RANGES
		logval("holder:rounds", ((int)((P2 *)_this)->rounds));
#endif
		;
		_m = 3; goto P999; /* 3 */
	case 69: // STATE 169 - /work/main/tests/models/slab.pml:277 - [locked = 0] (0:175:2 - 3)
		IfNotBlocked
		reached[2][169] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.locked);
		now.locked = 0;
#ifdef VAR_RANGES
		logval("locked", ((int)now.locked));
#endif
		;
		/* merge: rounds = (rounds+1)(175, 170, 175) */
		reached[2][170] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P2 *)_this)->rounds);
		((P2 *)_this)->rounds = (((int)((P2 *)_this)->rounds)+1);
#ifdef VAR_RANGES
		logval("holder:rounds", ((int)((P2 *)_this)->rounds));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 70: // STATE 172 - /work/main/tests/models/slab.pml:281 - [((rounds<=1))] (0:0:0 - 1)
		IfNotBlocked
		reached[2][172] = 1;
		if (!((((int)((P2 *)_this)->rounds)<=1)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 71: // STATE 178 - /work/main/tests/models/slab.pml:286 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[2][178] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC taker */
	case 72: // STATE 1 - /work/main/tests/models/slab.pml:111 - [(!(classbit[c]))] (0:0:1 - 1)
		IfNotBlocked
		reached[1][1] = 1;
		if (!( !(((int)now.classbit[ Index(((int)((P1 *)_this)->c), 3) ]))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: c */  (trpt+1)->bup.oval = ((P1 *)_this)->c;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->c = 0;
		_m = 3; goto P999; /* 0 */
	case 73: // STATE 6 - /work/main/tests/models/slab.pml:115 - [((class!=c))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][6] = 1;
		if (!((((int)now.class)!=((int)((P1 *)_this)->c))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 74: // STATE 11 - /work/main/tests/models/slab.pml:119 - [bits = (freebits&( ((c==1)) -> (7) : (3) ))] (0:0:1 - 7)
		IfNotBlocked
		reached[1][11] = 1;
		(trpt+1)->bup.oval = ((int)((P1 *)_this)->bits);
		((P1 *)_this)->bits = (((int)now.freebits)&( ((((int)((P1 *)_this)->c)==1)) ? (7) : (3) ));
#ifdef VAR_RANGES
		logval("taker:bits", ((int)((P1 *)_this)->bits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 75: // STATE 12 - /work/main/tests/models/slab.pml:121 - [((bits==0))] (0:0:1 - 1)
		IfNotBlocked
		reached[1][12] = 1;
		if (!((((int)((P1 *)_this)->bits)==0)))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: bits */  (trpt+1)->bup.oval = ((P1 *)_this)->bits;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->bits = 0;
		_m = 3; goto P999; /* 0 */
	case 76: // STATE 14 - /work/main/tests/models/slab.pml:122 - [((bits&1))] (30:0:2 - 1)
		IfNotBlocked
		reached[1][14] = 1;
		if (!((((int)((P1 *)_this)->bits)&1)))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: bits */  (trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((P1 *)_this)->bits;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->bits = 0;
		/* merge: i = 0(0, 15, 30) */
		reached[1][15] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P1 *)_this)->i);
		((P1 *)_this)->i = 0;
#ifdef VAR_RANGES
		logval("taker:i", ((int)((P1 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 21, 30) */
		reached[1][21] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 77: // STATE 16 - /work/main/tests/models/slab.pml:123 - [(((bits&3)==2))] (30:0:2 - 1)
		IfNotBlocked
		reached[1][16] = 1;
		if (!(((((int)((P1 *)_this)->bits)&3)==2)))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: bits */  (trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((P1 *)_this)->bits;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->bits = 0;
		/* merge: i = 1(0, 17, 30) */
		reached[1][17] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P1 *)_this)->i);
		((P1 *)_this)->i = 1;
#ifdef VAR_RANGES
		logval("taker:i", ((int)((P1 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 21, 30) */
		reached[1][21] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 78: // STATE 18 - /work/main/tests/models/slab.pml:124 - [((bits==4))] (30:0:2 - 1)
		IfNotBlocked
		reached[1][18] = 1;
		if (!((((int)((P1 *)_this)->bits)==4)))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: bits */  (trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((P1 *)_this)->bits;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->bits = 0;
		/* merge: i = 2(0, 19, 30) */
		reached[1][19] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P1 *)_this)->i);
		((P1 *)_this)->i = 2;
#ifdef VAR_RANGES
		logval("taker:i", ((int)((P1 *)_this)->i));
#endif
		;
		/* merge: .(goto)(0, 21, 30) */
		reached[1][21] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 79: // STATE 22 - /work/main/tests/models/slab.pml:126 - [had = ((freebits>>i)&1)] (0:28:2 - 1)
		IfNotBlocked
		reached[1][22] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)((P1 *)_this)->had);
		((P1 *)_this)->had = ((((int)now.freebits)>>((int)((P1 *)_this)->i))&1);
#ifdef VAR_RANGES
		logval("taker:had", ((int)((P1 *)_this)->had));
#endif
		;
		/* merge: freebits = (freebits&(7-(1<<i)))(28, 23, 28) */
		reached[1][23] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.freebits);
		now.freebits = (((int)now.freebits)&(7-(1<<((int)((P1 *)_this)->i))));
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 80: // STATE 24 - /work/main/tests/models/slab.pml:126 - [(!(died))] (137:0:1 - 1)
		IfNotBlocked
		reached[1][24] = 1;
		if (!( !(((int)now.died))))
			continue;
		/* merge: died = 1(137, 25, 137) */
		reached[1][25] = 1;
		(trpt+1)->bup.oval = ((int)now.died);
		now.died = 1;
#ifdef VAR_RANGES
		logval("died", ((int)now.died));
#endif
		;
		/* merge: goto out(137, 26, 137) */
		reached[1][26] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 81: // STATE 27 - /work/main/tests/models/slab.pml:126 - [(1)] (34:0:0 - 1)
		IfNotBlocked
		reached[1][27] = 1;
		if (!(1))
			continue;
		/* merge: .(goto)(0, 29, 34) */
		reached[1][29] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 82: // STATE 31 - /work/main/tests/models/slab.pml:128 - [(!(had))] (0:0:1 - 1)
		IfNotBlocked
		reached[1][31] = 1;
		if (!( !(((int)((P1 *)_this)->had))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: had */  (trpt+1)->bup.oval = ((P1 *)_this)->had;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->had = 0;
		_m = 3; goto P999; /* 0 */
	case 83: // STATE 36 - /work/main/tests/models/slab.pml:135 - [g = sgen[i]] (0:43:3 - 1)
		IfNotBlocked
		reached[1][36] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)((P1 *)_this)->g);
		((P1 *)_this)->g = ((int)now.sgen[ Index(((int)((P1 *)_this)->i), 3) ]);
#ifdef VAR_RANGES
		logval("taker:g", ((int)((P1 *)_this)->g));
#endif
		;
		/* merge: sc = sclass[i](43, 37, 43) */
		reached[1][37] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P1 *)_this)->sc);
		((P1 *)_this)->sc = ((int)now.sclass[ Index(((int)((P1 *)_this)->i), 3) ]);
#ifdef VAR_RANGES
		logval("taker:sc", ((int)((P1 *)_this)->sc));
#endif
		;
		/* merge: st = state[i](43, 38, 43) */
		reached[1][38] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P1 *)_this)->st);
		((P1 *)_this)->st = ((int)now.state[ Index(((int)((P1 *)_this)->i), 3) ]);
#ifdef VAR_RANGES
		logval("taker:st", ((int)((P1 *)_this)->st));
#endif
		;
		_m = 3; goto P999; /* 2 */
	case 84: // STATE 40 - /work/main/tests/models/slab.pml:136 - [((class!=c))] (0:0:1 - 1)
		IfNotBlocked
		reached[1][40] = 1;
		if (!((((int)now.class)!=((int)((P1 *)_this)->c))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: c */  (trpt+1)->bup.oval = ((P1 *)_this)->c;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->c = 0;
		_m = 3; goto P999; /* 0 */
	case 85: // STATE 45 - /work/main/tests/models/slab.pml:139 - [(((st!=1)||(sc!=c)))] (0:0:2 - 1)
		IfNotBlocked
		reached[1][45] = 1;
		if (!(((((int)((P1 *)_this)->st)!=1)||(((int)((P1 *)_this)->sc)!=((int)((P1 *)_this)->c)))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: st */  (trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((P1 *)_this)->st;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->st = 0;
		if (TstOnly) return 1; /* TT */
		/* dead 1: sc */  (trpt+1)->bup.ovals[1] = ((P1 *)_this)->sc;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P1 *)_this)->sc = 0;
		_m = 3; goto P999; /* 0 */
	case 86: // STATE 50 - /work/main/tests/models/slab.pml:144 - [((((sgen[i]==g)&&(sclass[i]==c))&&(state[i]==1)))] (61:0:1 - 1)
		IfNotBlocked
		reached[1][50] = 1;
		if (!((((((int)now.sgen[ Index(((int)((P1 *)_this)->i), 3) ])==((int)((P1 *)_this)->g))&&(((int)now.sclass[ Index(((int)((P1 *)_this)->i), 3) ])==((int)((P1 *)_this)->c)))&&(((int)now.state[ Index(((int)((P1 *)_this)->i), 3) ])==1))))
			continue;
		/* merge: assert(((class==c)&&!(foreign)))(61, 51, 61) */
		reached[1][51] = 1;
		spin_assert(((((int)now.class)==((int)((P1 *)_this)->c))&& !(((int)now.foreign))), "((class==c)&& !(foreign))", II, tt, t);
		/* merge: state[i] = 2(61, 52, 61) */
		reached[1][52] = 1;
		(trpt+1)->bup.oval = ((int)now.state[ Index(((int)((P1 *)_this)->i), 3) ]);
		now.state[ Index(((P1 *)_this)->i, 3) ] = 2;
#ifdef VAR_RANGES
		logval("state[taker:i]", ((int)now.state[ Index(((int)((P1 *)_this)->i), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 2 */
	case 87: // STATE 53 - /work/main/tests/models/slab.pml:58 - [assert((held[( (((c==2)&&(i==1))) ? (2) : (i) )]!=1))] (0:59:1 - 1)
		IfNotBlocked
		reached[1][53] = 1;
		spin_assert((((int)now.held[ Index(( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) ), 3) ])!=1), "(held[( (((c==2)&&(i==1))) ? (2) : (i) )]!=1)", II, tt, t);
		/* merge: held[( (((c==2)&&(i==1))) ? (2) : (i) )] = 1(59, 54, 59) */
		reached[1][54] = 1;
		(trpt+1)->bup.oval = ((int)now.held[ Index(( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) ), 3) ]);
		now.held[ Index(( (((((P1 *)_this)->c==2)&&(((P1 *)_this)->i==1))) ? (2) : (((P1 *)_this)->i) ), 3) ] = 1;
#ifdef VAR_RANGES
		logval("held[( (((taker:c==2)&&(taker:i==1))) ? (2) : (taker:i) )]", ((int)now.held[ Index(( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) ), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 88: // STATE 55 - /work/main/tests/models/slab.pml:61 - [(((c==2)&&(i==0)))] (69:0:1 - 1)
		IfNotBlocked
		reached[1][55] = 1;
		if (!(((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==0))))
			continue;
		/* merge: assert((held[1]!=1))(69, 56, 69) */
		reached[1][56] = 1;
		spin_assert((((int)now.held[1])!=1), "(held[1]!=1)", II, tt, t);
		/* merge: held[1] = 1(69, 57, 69) */
		reached[1][57] = 1;
		(trpt+1)->bup.oval = ((int)now.held[1]);
		now.held[1] = 1;
#ifdef VAR_RANGES
		logval("held[1]", ((int)now.held[1]));
#endif
		;
		/* merge: .(goto)(69, 60, 69) */
		reached[1][60] = 1;
		;
		/* merge: .(goto)(69, 65, 69) */
		reached[1][65] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 89: // STATE 60 - /work/main/tests/models/slab.pml:64 - [.(goto)] (0:69:0 - 2)
		IfNotBlocked
		reached[1][60] = 1;
		;
		/* merge: .(goto)(69, 65, 69) */
		reached[1][65] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 90: // STATE 67 - /work/main/tests/models/slab.pml:151 - [assert(((wgen[i]==g)&&!(ref[i])))] (0:116:1 - 1)
		IfNotBlocked
		reached[1][67] = 1;
		spin_assert(((((int)now.wgen[ Index(((int)((P1 *)_this)->i), 3) ])==((int)((P1 *)_this)->g))&& !(((int)now.ref[ Index(((int)((P1 *)_this)->i), 3) ]))), "((wgen[i]==g)&& !(ref[i]))", II, tt, t);
		/* merge: ref[i] = 1(116, 68, 116) */
		reached[1][68] = 1;
		(trpt+1)->bup.oval = ((int)now.ref[ Index(((int)((P1 *)_this)->i), 3) ]);
		now.ref[ Index(((P1 *)_this)->i, 3) ] = 1;
#ifdef VAR_RANGES
		logval("ref[taker:i]", ((int)now.ref[ Index(((int)((P1 *)_this)->i), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 91: // STATE 70 - /work/main/tests/models/slab.pml:76 - [dc = class] (0:0:1 - 1)
		IfNotBlocked
		reached[1][70] = 1;
		(trpt+1)->bup.oval = ((int)((P1 *)_this)->dc);
		((P1 *)_this)->dc = ((int)now.class);
#ifdef VAR_RANGES
		logval("taker:dc", ((int)((P1 *)_this)->dc));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 92: // STATE 71 - /work/main/tests/models/slab.pml:78 - [((dc==1))] (101:0:1 - 1)
		IfNotBlocked
		reached[1][71] = 1;
		if (!((((int)((P1 *)_this)->dc)==1)))
			continue;
		/* merge: di = ( (((c==2)&&(i==1))) -> (2) : (i) )(0, 72, 101) */
		reached[1][72] = 1;
		(trpt+1)->bup.oval = ((int)((P1 *)_this)->di);
		((P1 *)_this)->di = ( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) );
#ifdef VAR_RANGES
		logval("taker:di", ((int)((P1 *)_this)->di));
#endif
		;
		/* merge: .(goto)(0, 78, 101) */
		reached[1][78] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 93: // STATE 73 - /work/main/tests/models/slab.pml:79 - [(((dc==2)&&(( (((c==2)&&(i==1))) -> (2) : (i) )!=1)))] (101:0:1 - 1)
		IfNotBlocked
		reached[1][73] = 1;
		if (!(((((int)((P1 *)_this)->dc)==2)&&(( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) )!=1))))
			continue;
		/* merge: di = ( ((( (((c==2)&&(i==1))) -> (2) : (i) )==2)) -> (1) : (0) )(0, 74, 101) */
		reached[1][74] = 1;
		(trpt+1)->bup.oval = ((int)((P1 *)_this)->di);
		((P1 *)_this)->di = ( ((( (((((int)((P1 *)_this)->c)==2)&&(((int)((P1 *)_this)->i)==1))) ? (2) : (((int)((P1 *)_this)->i)) )==2)) ? (1) : (0) );
#ifdef VAR_RANGES
		logval("taker:di", ((int)((P1 *)_this)->di));
#endif
		;
		/* merge: .(goto)(0, 78, 101) */
		reached[1][78] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 94: // STATE 79 - /work/main/tests/models/slab.pml:84 - [(((wgen[di]==g)&&ref[di]))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][79] = 1;
		if (!(((((int)now.wgen[ Index(((int)((P1 *)_this)->di), 3) ])==((int)((P1 *)_this)->g))&&((int)now.ref[ Index(((int)((P1 *)_this)->di), 3) ]))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 95: // STATE 81 - /work/main/tests/models/slab.pml:86 - [assert((drops==0))] (0:96:3 - 1)
		IfNotBlocked
		reached[1][81] = 1;
		spin_assert((((int)now.drops)==0), "(drops==0)", II, tt, t);
		/* merge: drops = (drops+1)(96, 82, 96) */
		reached[1][82] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)now.drops);
		now.drops = (((int)now.drops)+1);
#ifdef VAR_RANGES
		logval("drops", ((int)now.drops));
#endif
		;
		/* merge: .(goto)(96, 85, 96) */
		reached[1][85] = 1;
		;
		/* merge: ref[di] = 0(96, 86, 96) */
		reached[1][86] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.ref[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.ref[ Index(((P1 *)_this)->di, 3) ] = 0;
#ifdef VAR_RANGES
		logval("ref[taker:di]", ((int)now.ref[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		/* merge: wgen[di] = (g+1)(96, 87, 96) */
		reached[1][87] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.wgen[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.wgen[ Index(((P1 *)_this)->di, 3) ] = (((int)((P1 *)_this)->g)+1);
#ifdef VAR_RANGES
		logval("wgen[taker:di]", ((int)now.wgen[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 4 */
	case 96: // STATE 86 - /work/main/tests/models/slab.pml:89 - [ref[di] = 0] (0:96:2 - 3)
		IfNotBlocked
		reached[1][86] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.ref[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.ref[ Index(((P1 *)_this)->di, 3) ] = 0;
#ifdef VAR_RANGES
		logval("ref[taker:di]", ((int)now.ref[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		/* merge: wgen[di] = (g+1)(96, 87, 96) */
		reached[1][87] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.wgen[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.wgen[ Index(((P1 *)_this)->di, 3) ] = (((int)((P1 *)_this)->g)+1);
#ifdef VAR_RANGES
		logval("wgen[taker:di]", ((int)now.wgen[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 97: // STATE 88 - /work/main/tests/models/slab.pml:58 - [assert((held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0))] (0:94:1 - 1)
		IfNotBlocked
		reached[1][88] = 1;
		spin_assert((((int)now.held[ Index(( (((((int)((P1 *)_this)->dc)==2)&&(((int)((P1 *)_this)->di)==1))) ? (2) : (((int)((P1 *)_this)->di)) ), 3) ])!=0), "(held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0)", II, tt, t);
		/* merge: held[( (((dc==2)&&(di==1))) ? (2) : (di) )] = 0(94, 89, 94) */
		reached[1][89] = 1;
		(trpt+1)->bup.oval = ((int)now.held[ Index(( (((((int)((P1 *)_this)->dc)==2)&&(((int)((P1 *)_this)->di)==1))) ? (2) : (((int)((P1 *)_this)->di)) ), 3) ]);
		now.held[ Index(( (((((P1 *)_this)->dc==2)&&(((P1 *)_this)->di==1))) ? (2) : (((P1 *)_this)->di) ), 3) ] = 0;
#ifdef VAR_RANGES
		logval("held[( (((taker:dc==2)&&(taker:di==1))) ? (2) : (taker:di) )]", ((int)now.held[ Index(( (((((int)((P1 *)_this)->dc)==2)&&(((int)((P1 *)_this)->di)==1))) ? (2) : (((int)((P1 *)_this)->di)) ), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 98: // STATE 90 - /work/main/tests/models/slab.pml:61 - [(((dc==2)&&(di==0)))] (105:0:1 - 1)
		IfNotBlocked
		reached[1][90] = 1;
		if (!(((((int)((P1 *)_this)->dc)==2)&&(((int)((P1 *)_this)->di)==0))))
			continue;
		/* merge: assert((held[1]!=0))(105, 91, 105) */
		reached[1][91] = 1;
		spin_assert((((int)now.held[1])!=0), "(held[1]!=0)", II, tt, t);
		/* merge: held[1] = 0(105, 92, 105) */
		reached[1][92] = 1;
		(trpt+1)->bup.oval = ((int)now.held[1]);
		now.held[1] = 0;
#ifdef VAR_RANGES
		logval("held[1]", ((int)now.held[1]));
#endif
		;
		/* merge: .(goto)(105, 95, 105) */
		reached[1][95] = 1;
		;
		/* merge: .(goto)(105, 100, 105) */
		reached[1][100] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 99: // STATE 95 - /work/main/tests/models/slab.pml:64 - [.(goto)] (0:105:0 - 2)
		IfNotBlocked
		reached[1][95] = 1;
		;
		/* merge: .(goto)(105, 100, 105) */
		reached[1][100] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 100: // STATE 102 - /work/main/tests/models/slab.pml:95 - [assert(((state[di]==2)&&(sgen[di]==g)))] (0:112:2 - 1)
		IfNotBlocked
		reached[1][102] = 1;
		spin_assert(((((int)now.state[ Index(((int)((P1 *)_this)->di), 3) ])==2)&&(((int)now.sgen[ Index(((int)((P1 *)_this)->di), 3) ])==((int)((P1 *)_this)->g))), "((state[di]==2)&&(sgen[di]==g))", II, tt, t);
		/* merge: state[di] = 1(112, 103, 112) */
		reached[1][103] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.state[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.state[ Index(((P1 *)_this)->di, 3) ] = 1;
#ifdef VAR_RANGES
		logval("state[taker:di]", ((int)now.state[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		/* merge: sgen[di] = (g+1)(112, 104, 112) */
		reached[1][104] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.sgen[ Index(((int)((P1 *)_this)->di), 3) ]);
		now.sgen[ Index(((P1 *)_this)->di, 3) ] = (((int)((P1 *)_this)->g)+1);
#ifdef VAR_RANGES
		logval("sgen[taker:di]", ((int)now.sgen[ Index(((int)((P1 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 2 */
	case 101: // STATE 106 - /work/main/tests/models/slab.pml:67 - [freebits = (freebits|(1<<di))] (0:0:1 - 1)
		IfNotBlocked
		reached[1][106] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = (((int)now.freebits)|(1<<((int)((P1 *)_this)->di)));
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 102: // STATE 107 - /work/main/tests/models/slab.pml:69 - [(!(classbit[dc]))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][107] = 1;
		if (!( !(((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ]))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 103: // STATE 108 - /work/main/tests/models/slab.pml:69 - [classbit[dc] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[1][108] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ]);
		now.classbit[ Index(((P1 *)_this)->dc, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[taker:dc]", ((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 104: // STATE 119 - /work/main/tests/models/slab.pml:162 - [freebits = (freebits|(1<<i))] (0:0:1 - 2)
		IfNotBlocked
		reached[1][119] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = (((int)now.freebits)|(1<<((int)((P1 *)_this)->i)));
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 105: // STATE 120 - /work/main/tests/models/slab.pml:163 - [dc = class] (0:0:1 - 1)
		IfNotBlocked
		reached[1][120] = 1;
		(trpt+1)->bup.oval = ((int)((P1 *)_this)->dc);
		((P1 *)_this)->dc = ((int)now.class);
#ifdef VAR_RANGES
		logval("taker:dc", ((int)((P1 *)_this)->dc));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 106: // STATE 121 - /work/main/tests/models/slab.pml:166 - [(((dc!=0)&&!(classbit[dc])))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][121] = 1;
		if (!(((((int)((P1 *)_this)->dc)!=0)&& !(((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ])))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 107: // STATE 122 - /work/main/tests/models/slab.pml:166 - [classbit[dc] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[1][122] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ]);
		now.classbit[ Index(((P1 *)_this)->dc, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[taker:dc]", ((int)now.classbit[ Index(((int)((P1 *)_this)->dc), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 108: // STATE 127 - /work/main/tests/models/slab.pml:171 - [classbit[c] = 0] (0:0:1 - 4)
		IfNotBlocked
		reached[1][127] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P1 *)_this)->c), 3) ]);
		now.classbit[ Index(((P1 *)_this)->c, 3) ] = 0;
#ifdef VAR_RANGES
		logval("classbit[taker:c]", ((int)now.classbit[ Index(((int)((P1 *)_this)->c), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 109: // STATE 128 - /work/main/tests/models/slab.pml:174 - [((class==c))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][128] = 1;
		if (!((((int)now.class)==((int)((P1 *)_this)->c))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 110: // STATE 129 - /work/main/tests/models/slab.pml:176 - [(((freebits&( ((c==1)) -> (7) : (3) ))!=0))] (0:0:0 - 1)
		IfNotBlocked
		reached[1][129] = 1;
		if (!(((((int)now.freebits)&( ((((int)((P1 *)_this)->c)==1)) ? (7) : (3) ))!=0)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 111: // STATE 130 - /work/main/tests/models/slab.pml:176 - [classbit[c] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[1][130] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P1 *)_this)->c), 3) ]);
		now.classbit[ Index(((P1 *)_this)->c, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[taker:c]", ((int)now.classbit[ Index(((int)((P1 *)_this)->c), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 112: // STATE 138 - /work/main/tests/models/slab.pml:184 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[1][138] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */

		 /* PROC dropper */
	case 113: // STATE 1 - /work/main/tests/models/slab.pml:76 - [dc = class] (0:0:1 - 1)
		IfNotBlocked
		reached[0][1] = 1;
		(trpt+1)->bup.oval = ((int)((P0 *)_this)->dc);
		((P0 *)_this)->dc = ((int)now.class);
#ifdef VAR_RANGES
		logval("dropper:dc", ((int)((P0 *)_this)->dc));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 114: // STATE 2 - /work/main/tests/models/slab.pml:78 - [((dc==1))] (32:0:1 - 1)
		IfNotBlocked
		reached[0][2] = 1;
		if (!((((int)((P0 *)_this)->dc)==1)))
			continue;
		/* merge: di = 2(0, 3, 32) */
		reached[0][3] = 1;
		(trpt+1)->bup.oval = ((int)((P0 *)_this)->di);
		((P0 *)_this)->di = 2;
#ifdef VAR_RANGES
		logval("dropper:di", ((int)((P0 *)_this)->di));
#endif
		;
		/* merge: .(goto)(0, 9, 32) */
		reached[0][9] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 115: // STATE 4 - /work/main/tests/models/slab.pml:79 - [(((dc==2)&&(2!=1)))] (32:0:1 - 1)
		IfNotBlocked
		reached[0][4] = 1;
		if (!(((((int)((P0 *)_this)->dc)==2)&&(2!=1))))
			continue;
		/* merge: di = ( ((2==2)) -> (1) : (0) )(0, 5, 32) */
		reached[0][5] = 1;
		(trpt+1)->bup.oval = ((int)((P0 *)_this)->di);
		((P0 *)_this)->di = ( ((2==2)) ? (1) : (0) );
#ifdef VAR_RANGES
		logval("dropper:di", ((int)((P0 *)_this)->di));
#endif
		;
		/* merge: .(goto)(0, 9, 32) */
		reached[0][9] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 116: // STATE 10 - /work/main/tests/models/slab.pml:84 - [(((wgen[di]==1)&&ref[di]))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][10] = 1;
		if (!(((((int)now.wgen[ Index(((int)((P0 *)_this)->di), 3) ])==1)&&((int)now.ref[ Index(((int)((P0 *)_this)->di), 3) ]))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 117: // STATE 11 - /work/main/tests/models/slab.pml:86 - [(1)] (27:0:3 - 1)
		IfNotBlocked
		reached[0][11] = 1;
		if (!(1))
			continue;
		/* merge: assert((drops==0))(27, 12, 27) */
		reached[0][12] = 1;
		spin_assert((((int)now.drops)==0), "(drops==0)", II, tt, t);
		/* merge: drops = (drops+1)(27, 13, 27) */
		reached[0][13] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)now.drops);
		now.drops = (((int)now.drops)+1);
#ifdef VAR_RANGES
		logval("drops", ((int)now.drops));
#endif
		;
		/* merge: .(goto)(27, 16, 27) */
		reached[0][16] = 1;
		;
		/* merge: ref[di] = 0(27, 17, 27) */
		reached[0][17] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.ref[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.ref[ Index(((P0 *)_this)->di, 3) ] = 0;
#ifdef VAR_RANGES
		logval("ref[dropper:di]", ((int)now.ref[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		/* merge: wgen[di] = (1+1)(27, 18, 27) */
		reached[0][18] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.wgen[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.wgen[ Index(((P0 *)_this)->di, 3) ] = (1+1);
#ifdef VAR_RANGES
		logval("wgen[dropper:di]", ((int)now.wgen[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 5 */
	case 118: // STATE 17 - /work/main/tests/models/slab.pml:89 - [ref[di] = 0] (0:27:2 - 3)
		IfNotBlocked
		reached[0][17] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.ref[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.ref[ Index(((P0 *)_this)->di, 3) ] = 0;
#ifdef VAR_RANGES
		logval("ref[dropper:di]", ((int)now.ref[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		/* merge: wgen[di] = (1+1)(27, 18, 27) */
		reached[0][18] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.wgen[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.wgen[ Index(((P0 *)_this)->di, 3) ] = (1+1);
#ifdef VAR_RANGES
		logval("wgen[dropper:di]", ((int)now.wgen[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 119: // STATE 19 - /work/main/tests/models/slab.pml:58 - [assert((held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0))] (0:25:1 - 1)
		IfNotBlocked
		reached[0][19] = 1;
		spin_assert((((int)now.held[ Index(( (((((int)((P0 *)_this)->dc)==2)&&(((int)((P0 *)_this)->di)==1))) ? (2) : (((int)((P0 *)_this)->di)) ), 3) ])!=0), "(held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0)", II, tt, t);
		/* merge: held[( (((dc==2)&&(di==1))) ? (2) : (di) )] = 0(25, 20, 25) */
		reached[0][20] = 1;
		(trpt+1)->bup.oval = ((int)now.held[ Index(( (((((int)((P0 *)_this)->dc)==2)&&(((int)((P0 *)_this)->di)==1))) ? (2) : (((int)((P0 *)_this)->di)) ), 3) ]);
		now.held[ Index(( (((((P0 *)_this)->dc==2)&&(((P0 *)_this)->di==1))) ? (2) : (((P0 *)_this)->di) ), 3) ] = 0;
#ifdef VAR_RANGES
		logval("held[( (((dropper:dc==2)&&(dropper:di==1))) ? (2) : (dropper:di) )]", ((int)now.held[ Index(( (((((int)((P0 *)_this)->dc)==2)&&(((int)((P0 *)_this)->di)==1))) ? (2) : (((int)((P0 *)_this)->di)) ), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 120: // STATE 21 - /work/main/tests/models/slab.pml:61 - [(((dc==2)&&(di==0)))] (36:0:1 - 1)
		IfNotBlocked
		reached[0][21] = 1;
		if (!(((((int)((P0 *)_this)->dc)==2)&&(((int)((P0 *)_this)->di)==0))))
			continue;
		/* merge: assert((held[1]!=0))(36, 22, 36) */
		reached[0][22] = 1;
		spin_assert((((int)now.held[1])!=0), "(held[1]!=0)", II, tt, t);
		/* merge: held[1] = 0(36, 23, 36) */
		reached[0][23] = 1;
		(trpt+1)->bup.oval = ((int)now.held[1]);
		now.held[1] = 0;
#ifdef VAR_RANGES
		logval("held[1]", ((int)now.held[1]));
#endif
		;
		/* merge: .(goto)(36, 26, 36) */
		reached[0][26] = 1;
		;
		/* merge: .(goto)(36, 31, 36) */
		reached[0][31] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 121: // STATE 26 - /work/main/tests/models/slab.pml:64 - [.(goto)] (0:36:0 - 2)
		IfNotBlocked
		reached[0][26] = 1;
		;
		/* merge: .(goto)(36, 31, 36) */
		reached[0][31] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 122: // STATE 33 - /work/main/tests/models/slab.pml:95 - [assert(((state[di]==2)&&(sgen[di]==1)))] (0:43:2 - 1)
		IfNotBlocked
		reached[0][33] = 1;
		spin_assert(((((int)now.state[ Index(((int)((P0 *)_this)->di), 3) ])==2)&&(((int)now.sgen[ Index(((int)((P0 *)_this)->di), 3) ])==1)), "((state[di]==2)&&(sgen[di]==1))", II, tt, t);
		/* merge: state[di] = 1(43, 34, 43) */
		reached[0][34] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.state[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.state[ Index(((P0 *)_this)->di, 3) ] = 1;
#ifdef VAR_RANGES
		logval("state[dropper:di]", ((int)now.state[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		/* merge: sgen[di] = (1+1)(43, 35, 43) */
		reached[0][35] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.sgen[ Index(((int)((P0 *)_this)->di), 3) ]);
		now.sgen[ Index(((P0 *)_this)->di, 3) ] = (1+1);
#ifdef VAR_RANGES
		logval("sgen[dropper:di]", ((int)now.sgen[ Index(((int)((P0 *)_this)->di), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 2 */
	case 123: // STATE 37 - /work/main/tests/models/slab.pml:67 - [freebits = (freebits|(1<<di))] (0:0:1 - 1)
		IfNotBlocked
		reached[0][37] = 1;
		(trpt+1)->bup.oval = ((int)now.freebits);
		now.freebits = (((int)now.freebits)|(1<<((int)((P0 *)_this)->di)));
#ifdef VAR_RANGES
		logval("freebits", ((int)now.freebits));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 124: // STATE 38 - /work/main/tests/models/slab.pml:69 - [(!(classbit[dc]))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][38] = 1;
		if (!( !(((int)now.classbit[ Index(((int)((P0 *)_this)->dc), 3) ]))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 125: // STATE 39 - /work/main/tests/models/slab.pml:69 - [classbit[dc] = 1] (0:0:1 - 1)
		IfNotBlocked
		reached[0][39] = 1;
		(trpt+1)->bup.oval = ((int)now.classbit[ Index(((int)((P0 *)_this)->dc), 3) ]);
		now.classbit[ Index(((P0 *)_this)->dc, 3) ] = 1;
#ifdef VAR_RANGES
		logval("classbit[dropper:dc]", ((int)now.classbit[ Index(((int)((P0 *)_this)->dc), 3) ]));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 126: // STATE 46 - /work/main/tests/models/slab.pml:104 - [-end-] (0:0:0 - 1)
		IfNotBlocked
		reached[0][46] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */
	case  _T5:	/* np_ */
		if (!((!(trpt->o_pm&4) && !(trpt->tau&128))))
			continue;
		/* else fall through */
	case  _T2:	/* true */
		_m = 3; goto P999;
#undef rand
	}

