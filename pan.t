#ifdef PEG
struct T_SRC {
	char *fl; int ln;
} T_SRC[NTRANS];

void
tr_2_src(int m, char *file, int ln)
{	T_SRC[m].fl = file;
	T_SRC[m].ln = ln;
}

void
putpeg(int n, int m)
{	printf("%5d	trans %4d ", m, n);
	printf("%s:%d\n",
		T_SRC[n].fl, T_SRC[n].ln);
}
#endif

void
settable(void)
{	Trans *T;
	Trans *settr(int, int, int, int, int, char *, int, int, int);

	trans = (Trans ***) emalloc(5*sizeof(Trans **));

	/* proctype 3: :init: */

	trans[3] = (Trans **) emalloc(32*sizeof(Trans *));

	T = trans[ 3][19] = settr(380,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(380,2,1,0,0,"ATOMIC", 1, 2, 0);
	trans[3][1]	= settr(362,2,12,3,3,"sclass[0] = 1", 1, 2, 0); /* m: 2 -> 0,12 */
	reached3[2] = 1;
	trans[3][2]	= settr(0,0,0,0,0,"sclass[1] = 1",0,0,0);
	trans[3][3]	= settr(0,0,0,0,0,"sclass[2] = 1",0,0,0);
	trans[3][4]	= settr(0,0,0,0,0,"state[0] = 1",0,0,0);
	trans[3][5]	= settr(0,0,0,0,0,"state[1] = 1",0,0,0);
	trans[3][6]	= settr(0,0,0,0,0,"state[2] = 2",0,0,0);
	trans[3][7]	= settr(0,0,0,0,0,"sgen[2] = 1",0,0,0);
	trans[3][8]	= settr(0,0,0,0,0,"wgen[2] = 1",0,0,0);
	trans[3][9]	= settr(0,0,0,0,0,"ref[2] = 1",0,0,0);
	trans[3][10]	= settr(0,0,0,0,0,"held[2] = 1",0,0,0);
	trans[3][11]	= settr(0,0,0,0,0,"classbit[1] = 1",0,0,0);
	trans[3][12]	= settr(373,2,13,4,4,"(run dropper())", 1, 2, 0);
	trans[3][13]	= settr(374,2,16,5,5,"(run dropper())", 1, 2, 0);
	T = trans[3][16] = settr(377,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(377,2,14,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(377,2,15,0,0,"IF", 1, 2, 0);
	trans[3][14]	= settr(375,2,17,6,6,"(run taker(1))", 1, 2, 0);
	trans[3][17]	= settr(378,2,18,1,0,".(goto)", 1, 2, 0);
	trans[3][15]	= settr(376,2,17,7,7,"(run taker(2))", 1, 2, 0);
	trans[3][18]	= settr(379,0,20,8,8,"(run holder())", 1, 2, 0);
	trans[3][20]	= settr(381,0,21,9,0,"(timeout)", 1, 3000, 0);
	trans[3][21]	= settr(382,0,28,10,10,"i = 0", 0, 2, 0);
	trans[3][29]	= settr(390,0,28,1,0,".(goto)", 0, 2, 0);
	T = trans[3][28] = settr(389,0,0,0,0,"DO", 0, 2, 0);
	T = T->nxt	= settr(389,0,22,0,0,"DO", 0, 2, 0);
	    T->nxt	= settr(389,0,26,0,0,"DO", 0, 2, 0);
	trans[3][22]	= settr(383,0,23,11,0,"(((((class!=0)&&!(foreign))&&!(died))&&(i<( ((class==1)) -> (3) : (2) ))))", 1, 2, 0);
	trans[3][23]	= settr(384,0,24,12,0,"assert((state[i]!=3))", 1, 2, 0);
	trans[3][24]	= settr(385,0,25,13,0,"assert(((state[i]!=1)||(classbit[class]&&((freebits>>i)&1))))", 1, 2, 0);
	trans[3][25]	= settr(386,0,28,14,14,"i = (i+1)", 0, 2, 0);
	trans[3][26]	= settr(387,0,31,2,0,"else", 0, 2, 0);
	trans[3][27]	= settr(388,0,31,1,0,"goto :b3", 0, 2, 0);
	trans[3][30]	= settr(391,0,31,1,0,"break", 0, 2, 0);
	trans[3][31]	= settr(392,0,0,15,15,"-end-", 0, 3500, 0);

	/* proctype 2: holder */

	trans[2] = (Trans **) emalloc(179*sizeof(Trans *));

	T = trans[ 2][3] = settr(186,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(186,2,1,0,0,"ATOMIC", 1, 2, 0);
	trans[2][1]	= settr(184,4,4,16,16,"(!(locked))", 1, 2, 0); /* m: 2 -> 4,0 */
	reached2[2] = 1;
	trans[2][2]	= settr(0,0,0,0,0,"locked = 1",0,0,0);
	trans[2][4]	= settr(187,0,9,17,17,"c = class", 1, 2, 0);
	T = trans[2][9] = settr(192,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(192,0,5,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(192,0,7,0,0,"IF", 0, 2, 0);
	trans[2][5]	= settr(188,0,65,18,18,"(((c==0)||foreign))", 1, 2, 0);
	trans[2][6]	= settr(189,0,65,1,0,"goto make", 0, 2, 0);
	trans[2][10]	= settr(193,0,29,1,0,".(goto)", 0, 2, 0);
	trans[2][7]	= settr(190,0,8,2,0,"else", 0, 2, 0);
	trans[2][8]	= settr(191,0,29,19,19,"i = 0", 0, 2, 0);
	trans[2][30]	= settr(213,0,29,1,0,".(goto)", 0, 2, 0);
	T = trans[2][29] = settr(212,0,0,0,0,"DO", 0, 2, 0);
	T = T->nxt	= settr(212,0,11,0,0,"DO", 0, 2, 0);
	    T->nxt	= settr(212,0,27,0,0,"DO", 0, 2, 0);
	trans[2][11]	= settr(194,0,25,20,0,"((i<( ((c==1)) -> (3) : (2) )))", 0, 2, 0);
	T = trans[ 2][25] = settr(208,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(208,2,16,0,0,"ATOMIC", 1, 2, 0);
	T = trans[2][16] = settr(199,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(199,2,12,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(199,2,15,0,0,"IF", 1, 2, 0);
	trans[2][12]	= settr(195,4,171,21,21,"(!(died))", 1, 2, 0); /* m: 13 -> 171,0 */
	reached2[13] = 1;
	trans[2][13]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][14]	= settr(197,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][17]	= settr(200,2,23,1,0,".(goto)", 1, 2, 0);
	trans[2][15]	= settr(198,2,23,1,0,"(1)", 1, 2, 0);
	T = trans[2][23] = settr(206,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(206,2,18,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(206,2,20,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(206,2,21,0,0,"IF", 1, 2, 0);
	trans[2][18]	= settr(201,0,29,22,22,"((state[i]==1))", 1, 2, 0); /* m: 19 -> 29,0 */
	reached2[19] = 1;
	trans[2][19]	= settr(0,0,0,0,0,"state[i] = 3",0,0,0);
	trans[2][24]	= settr(207,0,29,23,23,".(goto)", 1, 2, 0); /* m: 26 -> 0,29 */
	reached2[26] = 1;
	trans[2][20]	= settr(203,0,29,24,24,"((state[i]==3))", 1, 2, 0); /* m: 24 -> 29,0 */
	reached2[24] = 1;
	trans[2][21]	= settr(204,2,22,2,0,"else", 1, 2, 0);
	trans[2][22]	= settr(205,0,145,1,0,"goto used", 1, 2, 0);
	trans[2][26]	= settr(0,0,0,0,0,"i = (i+1)",0,0,0);
	trans[2][27]	= settr(210,0,39,2,0,"else", 0, 2, 0);
	trans[2][28]	= settr(211,0,39,1,0,"goto :b0", 0, 2, 0);
	trans[2][31]	= settr(214,0,39,1,0,"break", 0, 2, 0);
	T = trans[ 2][39] = settr(222,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(222,2,32,0,0,"ATOMIC", 1, 2, 0);
	trans[2][32]	= settr(215,2,37,25,25,"classbit[c] = 0", 1, 2, 0);
	T = trans[2][37] = settr(220,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(220,2,33,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(220,2,36,0,0,"IF", 1, 2, 0);
	trans[2][33]	= settr(216,4,171,26,26,"(!(died))", 1, 2, 0); /* m: 34 -> 171,0 */
	reached2[34] = 1;
	trans[2][34]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][35]	= settr(218,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][38]	= settr(221,0,47,1,0,".(goto)", 1, 2, 0);
	trans[2][36]	= settr(219,4,47,27,27,"(1)", 1, 2, 0); /* m: 38 -> 47,0 */
	reached2[38] = 1;
	T = trans[ 2][47] = settr(230,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(230,2,40,0,0,"ATOMIC", 1, 2, 0);
	trans[2][40]	= settr(223,2,45,28,28,"class = 0", 1, 2, 0);
	T = trans[2][45] = settr(228,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(228,2,41,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(228,2,44,0,0,"IF", 1, 2, 0);
	trans[2][41]	= settr(224,4,171,29,29,"(!(died))", 1, 2, 0); /* m: 42 -> 171,0 */
	reached2[42] = 1;
	trans[2][42]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][43]	= settr(226,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][46]	= settr(229,0,55,1,0,".(goto)", 1, 2, 0);
	trans[2][44]	= settr(227,4,55,30,30,"(1)", 1, 2, 0); /* m: 46 -> 55,0 */
	reached2[46] = 1;
	T = trans[ 2][55] = settr(238,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(238,2,48,0,0,"ATOMIC", 1, 2, 0);
	trans[2][48]	= settr(231,2,53,31,31,"freebits = 0", 1, 2, 0);
	T = trans[2][53] = settr(236,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(236,2,49,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(236,2,52,0,0,"IF", 1, 2, 0);
	trans[2][49]	= settr(232,4,171,32,32,"(!(died))", 1, 2, 0); /* m: 50 -> 171,0 */
	reached2[50] = 1;
	trans[2][50]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][51]	= settr(234,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][54]	= settr(237,0,65,1,0,".(goto)", 1, 2, 0);
	trans[2][52]	= settr(235,4,65,33,33,"(1)", 1, 2, 0); /* m: 54 -> 65,0 */
	reached2[54] = 1;
	T = trans[2][65] = settr(248,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(248,0,56,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(248,0,62,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(248,0,63,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(248,0,64,0,0,"IF", 0, 2, 0);
	trans[2][56]	= settr(239,0,148,34,0,"(foreign)", 1, 2, 0);
	trans[2][57]	= settr(240,0,148,1,0,"goto unlock", 0, 2, 0);
	trans[2][66]	= settr(249,0,73,1,0,".(goto)", 0, 2, 0);
	T = trans[ 2][62] = settr(245,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(245,2,58,0,0,"ATOMIC", 1, 2, 0);
	trans[2][58]	= settr(241,4,148,35,35,"(!(foreign))", 1, 2, 0); /* m: 59 -> 148,0 */
	reached2[59] = 1;
	trans[2][59]	= settr(0,0,0,0,0,"foreign = 1",0,0,0);
	trans[2][60]	= settr(0,0,0,0,0,"assert(((!(held[0])&&!(held[1]))&&!(held[2])))",0,0,0);
	trans[2][61]	= settr(244,0,148,1,0,"goto unlock", 1, 2, 0);
	trans[2][63]	= settr(246,0,73,36,36,"nc = 1", 0, 2, 0);
	trans[2][64]	= settr(247,0,73,37,37,"nc = 2", 0, 2, 0);
	T = trans[ 2][73] = settr(256,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(256,2,67,0,0,"ATOMIC", 1, 2, 0);
	trans[2][67]	= settr(250,4,85,38,38,"g = wgen[0]", 1, 2, 0); /* m: 68 -> 0,85 */
	reached2[68] = 1;
	trans[2][68]	= settr(0,0,0,0,0,"g = ( ((wgen[1]>g)) -> (wgen[1]) : (g) )",0,0,0);
	trans[2][69]	= settr(0,0,0,0,0,"g = ( ((wgen[2]>g)) -> (wgen[2]) : (g) )",0,0,0);
	trans[2][70]	= settr(0,0,0,0,0,"g = ( ((sgen[0]>g)) -> (sgen[0]) : (g) )",0,0,0);
	trans[2][71]	= settr(0,0,0,0,0,"g = ( ((sgen[1]>g)) -> (sgen[1]) : (g) )",0,0,0);
	trans[2][72]	= settr(0,0,0,0,0,"g = ( ((sgen[2]>g)) -> (sgen[2]) : (g) )",0,0,0);
	T = trans[ 2][85] = settr(268,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(268,2,82,0,0,"ATOMIC", 1, 2, 0);
	T = trans[ 2][82] = settr(265,0,0,0,0,"sub-sequence", 1, 2, 0);
	T->nxt	= settr(265,0,74,0,0,"sub-sequence", 1, 2, 0);
	trans[2][74]	= settr(257,2,80,39,39,"assert((held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=1))", 1, 2, 0); /* m: 75 -> 0,80 */
	reached2[75] = 1;
	trans[2][75]	= settr(0,0,0,0,0,"held[( (((nc==2)&&(0==1))) ? (2) : (0) )] = 1",0,0,0);
	T = trans[2][80] = settr(263,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(263,2,76,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(263,2,79,0,0,"IF", 1, 2, 0);
	trans[2][76]	= settr(259,0,103,40,40,"(((nc==2)&&(0==0)))", 1, 2, 0); /* m: 77 -> 103,0 */
	reached2[77] = 1;
	trans[2][77]	= settr(0,0,0,0,0,"assert((held[1]!=1))",0,0,0);
	trans[2][78]	= settr(0,0,0,0,0,"held[1] = 1",0,0,0);
	trans[2][81]	= settr(264,2,83,1,0,".(goto)", 1, 2, 0); /* m: 83 -> 0,103 */
	reached2[83] = 1;
	trans[2][79]	= settr(262,2,83,2,0,"else", 1, 2, 0);
	trans[2][83]	= settr(266,0,103,41,41,"making = 1", 1, 2, 0); /* m: 84 -> 0,103 */
	reached2[84] = 1;
	trans[2][84]	= settr(0,0,0,0,0,"i = 0",0,0,0);
	trans[2][104]	= settr(287,0,103,1,0,".(goto)", 0, 2, 0);
	T = trans[2][103] = settr(286,0,0,0,0,"DO", 0, 2, 0);
	T = T->nxt	= settr(286,0,86,0,0,"DO", 0, 2, 0);
	    T->nxt	= settr(286,0,101,0,0,"DO", 0, 2, 0);
	trans[2][86]	= settr(269,0,89,42,0,"((i<( ((nc==1)) -> (3) : (2) )))", 0, 2, 0);
	T = trans[ 2][89] = settr(272,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(272,2,87,0,0,"ATOMIC", 1, 2, 0);
	trans[2][87]	= settr(270,4,99,43,43,"wgen[i] = (g+1)", 1, 2, 0); /* m: 88 -> 0,99 */
	reached2[88] = 1;
	trans[2][88]	= settr(0,0,0,0,0,"ref[i] = (i==0)",0,0,0);
	T = trans[ 2][99] = settr(282,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(282,2,90,0,0,"ATOMIC", 1, 2, 0);
	trans[2][90]	= settr(273,2,97,44,44,"sgen[i] = (g+1)", 1, 2, 0); /* m: 91 -> 0,97 */
	reached2[91] = 1;
	trans[2][91]	= settr(0,0,0,0,0,"sclass[i] = nc",0,0,0);
	trans[2][92]	= settr(0,0,0,0,0,"state[i] = ( ((i==0)) -> (2) : (1) )",0,0,0);
	T = trans[2][97] = settr(280,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(280,2,93,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(280,2,96,0,0,"IF", 1, 2, 0);
	trans[2][93]	= settr(276,4,171,45,45,"(!(died))", 1, 2, 0); /* m: 94 -> 171,0 */
	reached2[94] = 1;
	trans[2][94]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][95]	= settr(278,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][98]	= settr(281,0,103,46,46,".(goto)", 1, 2, 0); /* m: 100 -> 0,103 */
	reached2[100] = 1;
	trans[2][96]	= settr(279,0,103,47,47,"(1)", 1, 2, 0); /* m: 98 -> 103,0 */
	reached2[98] = 1;
	trans[2][100]	= settr(0,0,0,0,0,"i = (i+1)",0,0,0);
	trans[2][101]	= settr(284,0,113,2,0,"else", 0, 2, 0);
	trans[2][102]	= settr(285,0,113,1,0,"goto :b1", 0, 2, 0);
	trans[2][105]	= settr(288,0,113,1,0,"break", 0, 2, 0);
	T = trans[ 2][113] = settr(296,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(296,2,106,0,0,"ATOMIC", 1, 2, 0);
	trans[2][106]	= settr(289,2,111,48,48,"freebits = (( ((nc==1)) -> (7) : (3) )-1)", 1, 2, 0);
	T = trans[2][111] = settr(294,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(294,2,107,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(294,2,110,0,0,"IF", 1, 2, 0);
	trans[2][107]	= settr(290,4,171,49,49,"(!(died))", 1, 2, 0); /* m: 108 -> 171,0 */
	reached2[108] = 1;
	trans[2][108]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][109]	= settr(292,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][112]	= settr(295,0,122,1,0,".(goto)", 1, 2, 0);
	trans[2][110]	= settr(293,4,122,50,50,"(1)", 1, 2, 0); /* m: 112 -> 122,0 */
	reached2[112] = 1;
	T = trans[ 2][122] = settr(305,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(305,2,114,0,0,"ATOMIC", 1, 2, 0);
	trans[2][114]	= settr(297,2,120,51,51,"class = nc", 1, 2, 0); /* m: 115 -> 0,120 */
	reached2[115] = 1;
	trans[2][115]	= settr(0,0,0,0,0,"making = 0",0,0,0);
	T = trans[2][120] = settr(303,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(303,2,116,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(303,2,119,0,0,"IF", 1, 2, 0);
	trans[2][116]	= settr(299,4,171,52,52,"(!(died))", 1, 2, 0); /* m: 117 -> 171,0 */
	reached2[117] = 1;
	trans[2][117]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[2][118]	= settr(301,0,171,1,0,"goto dead", 1, 2, 0);
	trans[2][121]	= settr(304,0,123,1,0,".(goto)", 1, 2, 0);
	trans[2][119]	= settr(302,4,123,53,53,"(1)", 1, 2, 0); /* m: 121 -> 123,0 */
	reached2[121] = 1;
	trans[2][123]	= settr(306,0,148,54,54,"classbit[nc] = 1", 1, 2, 0);
	trans[2][124]	= settr(307,0,148,1,0,"goto unlock", 0, 2, 0);
	T = trans[ 2][145] = settr(328,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(328,0,125,0,0,"sub-sequence", 0, 2, 0);
	trans[2][125]	= settr(308,0,142,55,55,"i = 0", 0, 2, 0);
	trans[2][143]	= settr(326,0,142,1,0,".(goto)", 0, 2, 0);
	T = trans[2][142] = settr(325,0,0,0,0,"DO", 0, 2, 0);
	T = T->nxt	= settr(325,0,126,0,0,"DO", 0, 2, 0);
	    T->nxt	= settr(325,0,140,0,0,"DO", 0, 2, 0);
	trans[2][126]	= settr(309,0,137,56,0,"((i<( ((c==1)) -> (3) : (2) )))", 0, 2, 0);
	T = trans[2][137] = settr(320,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(320,0,127,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(320,0,136,0,0,"IF", 0, 2, 0);
	trans[2][127]	= settr(310,0,128,57,0,"((state[i]==3))", 1, 2, 0);
	trans[2][128]	= settr(311,0,135,58,58,"state[i] = 1", 1, 2, 0);
	T = trans[ 2][135] = settr(318,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(318,0,129,0,0,"sub-sequence", 0, 2, 0);
	trans[2][129]	= settr(312,0,133,59,59,"freebits = (freebits|(1<<i))", 1, 2, 0);
	T = trans[2][133] = settr(316,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(316,0,130,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(316,0,132,0,0,"IF", 0, 2, 0);
	trans[2][130]	= settr(313,0,131,60,0,"(!(classbit[c]))", 1, 2, 0);
	trans[2][131]	= settr(314,0,139,61,61,"classbit[c] = 1", 1, 2, 0);
	trans[2][134]	= settr(317,0,139,1,0,".(goto)", 0, 2, 0); /* m: 139 -> 0,142 */
	reached2[139] = 1;
	trans[2][132]	= settr(315,0,139,2,0,"else", 0, 2, 0);
	trans[2][138]	= settr(321,0,139,1,0,".(goto)", 0, 2, 0); /* m: 139 -> 0,142 */
	reached2[139] = 1;
	trans[2][136]	= settr(319,0,139,2,0,"else", 0, 2, 0);
	trans[2][139]	= settr(322,0,142,62,62,"i = (i+1)", 0, 2, 0);
	trans[2][140]	= settr(323,0,148,2,0,"else", 0, 2, 0);
	trans[2][141]	= settr(324,0,148,1,0,"goto :b2", 0, 2, 0);
	trans[2][144]	= settr(327,0,148,1,0,"break", 0, 2, 0);
	T = trans[ 2][148] = settr(331,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(331,2,146,0,0,"ATOMIC", 1, 2, 0);
	trans[2][146]	= settr(329,4,153,63,63,"locked = 0", 1, 2, 0); /* m: 147 -> 0,153 */
	reached2[147] = 1;
	trans[2][147]	= settr(0,0,0,0,0,"rounds = (rounds+1)",0,0,0);
	T = trans[2][153] = settr(336,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(336,0,149,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(336,0,151,0,0,"IF", 0, 2, 0);
	trans[2][149]	= settr(332,0,3,64,0,"((rounds<1))", 0, 2, 0);
	trans[2][150]	= settr(333,0,3,1,0,"goto start", 0, 2, 0);
	trans[2][154]	= settr(337,0,171,1,0,".(goto)", 0, 2, 0);
	trans[2][151]	= settr(334,0,177,2,0,"else", 0, 2, 0);
	trans[2][152]	= settr(335,0,177,1,0,"goto out", 0, 2, 0);
	T = trans[ 2][171] = settr(354,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(354,2,167,0,0,"ATOMIC", 1, 2, 0);
	T = trans[2][167] = settr(350,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(350,2,155,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(350,2,166,0,0,"IF", 1, 2, 0);
	trans[2][155]	= settr(338,2,164,65,65,"(making)", 1, 2, 0);
	T = trans[ 2][164] = settr(347,0,0,0,0,"sub-sequence", 1, 2, 0);
	T->nxt	= settr(347,0,156,0,0,"sub-sequence", 1, 2, 0);
	trans[2][156]	= settr(339,2,162,66,66,"assert((held[( (((nc==2)&&(0==1))) ? (2) : (0) )]!=0))", 1, 2, 0); /* m: 157 -> 0,162 */
	reached2[157] = 1;
	trans[2][157]	= settr(0,0,0,0,0,"held[( (((nc==2)&&(0==1))) ? (2) : (0) )] = 0",0,0,0);
	T = trans[2][162] = settr(345,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(345,2,158,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(345,2,161,0,0,"IF", 1, 2, 0);
	trans[2][158]	= settr(341,4,175,67,67,"(((nc==2)&&(0==0)))", 1, 2, 0); /* m: 159 -> 175,0 */
	reached2[159] = 1;
	trans[2][159]	= settr(0,0,0,0,0,"assert((held[1]!=0))",0,0,0);
	trans[2][160]	= settr(0,0,0,0,0,"held[1] = 0",0,0,0);
	trans[2][163]	= settr(346,2,165,1,0,".(goto)", 1, 2, 0); /* m: 165 -> 0,175 */
	reached2[165] = 1;
	trans[2][161]	= settr(344,2,165,2,0,"else", 1, 2, 0);
	trans[2][165]	= settr(348,4,175,68,68,"making = 0", 1, 2, 0); /* m: 169 -> 0,175 */
	reached2[169] = 1;
	trans[2][168]	= settr(351,2,169,1,0,".(goto)", 1, 2, 0); /* m: 169 -> 0,175 */
	reached2[169] = 1;
	trans[2][166]	= settr(349,2,169,2,0,"else", 1, 2, 0);
	trans[2][169]	= settr(352,4,175,69,69,"locked = 0", 1, 2, 0); /* m: 170 -> 0,175 */
	reached2[170] = 1;
	trans[2][170]	= settr(0,0,0,0,0,"rounds = (rounds+1)",0,0,0);
	T = trans[2][175] = settr(358,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(358,0,172,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(358,0,174,0,0,"IF", 0, 2, 0);
	trans[2][172]	= settr(355,0,3,70,0,"((rounds<=1))", 0, 2, 0);
	trans[2][173]	= settr(356,0,3,1,0,"goto start", 0, 2, 0);
	trans[2][176]	= settr(359,0,177,1,0,".(goto)", 0, 2, 0);
	trans[2][174]	= settr(357,0,177,2,0,"else", 0, 2, 0);
	trans[2][177]	= settr(360,0,178,1,0,"(1)", 0, 2, 0);
	trans[2][178]	= settr(361,0,0,71,71,"-end-", 0, 3500, 0);

	/* proctype 1: taker */

	trans[1] = (Trans **) emalloc(139*sizeof(Trans *));

	T = trans[1][4] = settr(49,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(49,0,1,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(49,0,3,0,0,"IF", 0, 2, 0);
	trans[1][1]	= settr(46,0,137,72,72,"(!(classbit[c]))", 1, 2, 0);
	trans[1][2]	= settr(47,0,137,1,0,"goto out", 0, 2, 0);
	trans[1][5]	= settr(50,0,9,1,0,".(goto)", 0, 2, 0);
	trans[1][3]	= settr(48,0,9,2,0,"else", 0, 2, 0);
	T = trans[1][9] = settr(54,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(54,0,6,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(54,0,8,0,0,"IF", 0, 2, 0);
	trans[1][6]	= settr(51,0,127,73,0,"((class!=c))", 1, 2, 0);
	trans[1][7]	= settr(52,0,127,1,0,"goto clear", 0, 2, 0);
	trans[1][10]	= settr(55,0,11,1,0,".(goto)", 0, 2, 0);
	trans[1][8]	= settr(53,0,11,2,0,"else", 0, 2, 0);
	trans[1][11]	= settr(56,0,20,74,74,"bits = (freebits&( ((c==1)) -> (7) : (3) ))", 1, 2, 0);
	T = trans[1][20] = settr(65,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(65,0,12,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(65,0,14,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(65,0,16,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(65,0,18,0,0,"IF", 0, 2, 0);
	trans[1][12]	= settr(57,0,127,75,75,"((bits==0))", 0, 2, 0);
	trans[1][13]	= settr(58,0,127,1,0,"goto clear", 0, 2, 0);
	trans[1][21]	= settr(66,0,30,1,0,".(goto)", 0, 2, 0);
	trans[1][14]	= settr(59,0,30,76,76,"((bits&1))", 0, 2, 0); /* m: 15 -> 30,0 */
	reached1[15] = 1;
	trans[1][15]	= settr(0,0,0,0,0,"i = 0",0,0,0);
	trans[1][16]	= settr(61,0,30,77,77,"(((bits&3)==2))", 0, 2, 0); /* m: 17 -> 30,0 */
	reached1[17] = 1;
	trans[1][17]	= settr(0,0,0,0,0,"i = 1",0,0,0);
	trans[1][18]	= settr(63,0,30,78,78,"((bits==4))", 0, 2, 0); /* m: 19 -> 30,0 */
	reached1[19] = 1;
	trans[1][19]	= settr(0,0,0,0,0,"i = 2",0,0,0);
	T = trans[ 1][30] = settr(75,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(75,2,22,0,0,"ATOMIC", 1, 2, 0);
	trans[1][22]	= settr(67,2,28,79,79,"had = ((freebits>>i)&1)", 1, 2, 0); /* m: 23 -> 0,28 */
	reached1[23] = 1;
	trans[1][23]	= settr(0,0,0,0,0,"freebits = (freebits&(7-(1<<i)))",0,0,0);
	T = trans[1][28] = settr(73,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(73,2,24,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(73,2,27,0,0,"IF", 1, 2, 0);
	trans[1][24]	= settr(69,4,137,80,80,"(!(died))", 1, 2, 0); /* m: 25 -> 137,0 */
	reached1[25] = 1;
	trans[1][25]	= settr(0,0,0,0,0,"died = 1",0,0,0);
	trans[1][26]	= settr(71,0,137,1,0,"goto out", 1, 2, 0);
	trans[1][29]	= settr(74,0,34,1,0,".(goto)", 1, 2, 0);
	trans[1][27]	= settr(72,4,34,81,81,"(1)", 1, 2, 0); /* m: 29 -> 34,0 */
	reached1[29] = 1;
	T = trans[1][34] = settr(79,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(79,0,31,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(79,0,33,0,0,"IF", 0, 2, 0);
	trans[1][31]	= settr(76,0,11,82,82,"(!(had))", 0, 2, 0);
	trans[1][32]	= settr(77,0,11,1,0,"goto next", 0, 2, 0);
	trans[1][35]	= settr(80,0,39,1,0,".(goto)", 0, 2, 0);
	trans[1][33]	= settr(78,0,39,2,0,"else", 0, 2, 0);
	T = trans[ 1][39] = settr(84,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(84,2,36,0,0,"ATOMIC", 1, 2, 0);
	trans[1][36]	= settr(81,4,43,83,83,"g = sgen[i]", 1, 2, 0); /* m: 37 -> 0,43 */
	reached1[37] = 1;
	trans[1][37]	= settr(0,0,0,0,0,"sc = sclass[i]",0,0,0);
	trans[1][38]	= settr(0,0,0,0,0,"st = state[i]",0,0,0);
	T = trans[1][43] = settr(88,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(88,0,40,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(88,0,42,0,0,"IF", 0, 2, 0);
	trans[1][40]	= settr(85,0,119,84,84,"((class!=c))", 1, 2, 0);
	trans[1][41]	= settr(86,0,119,1,0,"goto other", 0, 2, 0);
	trans[1][44]	= settr(89,0,48,1,0,".(goto)", 0, 2, 0);
	trans[1][42]	= settr(87,0,48,2,0,"else", 0, 2, 0);
	T = trans[1][48] = settr(93,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(93,0,45,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(93,0,47,0,0,"IF", 0, 2, 0);
	trans[1][45]	= settr(90,0,11,85,85,"(((st!=1)||(sc!=c)))", 0, 2, 0);
	trans[1][46]	= settr(91,0,11,1,0,"goto next", 0, 2, 0);
	trans[1][49]	= settr(94,0,66,1,0,".(goto)", 0, 2, 0);
	trans[1][47]	= settr(92,0,66,2,0,"else", 0, 2, 0);
	T = trans[ 1][66] = settr(111,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(111,2,64,0,0,"ATOMIC", 1, 2, 0);
	T = trans[1][64] = settr(109,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(109,2,50,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(109,2,62,0,0,"IF", 1, 2, 0);
	trans[1][50]	= settr(95,2,61,86,86,"((((sgen[i]==g)&&(sclass[i]==c))&&(state[i]==1)))", 1, 2, 0); /* m: 51 -> 61,0 */
	reached1[51] = 1;
	trans[1][51]	= settr(0,0,0,0,0,"assert(((class==c)&&!(foreign)))",0,0,0);
	trans[1][52]	= settr(0,0,0,0,0,"state[i] = 2",0,0,0);
	T = trans[ 1][61] = settr(106,0,0,0,0,"sub-sequence", 1, 2, 0);
	T->nxt	= settr(106,0,53,0,0,"sub-sequence", 1, 2, 0);
	trans[1][53]	= settr(98,2,59,87,87,"assert((held[( (((c==2)&&(i==1))) ? (2) : (i) )]!=1))", 1, 2, 0); /* m: 54 -> 0,59 */
	reached1[54] = 1;
	trans[1][54]	= settr(0,0,0,0,0,"held[( (((c==2)&&(i==1))) ? (2) : (i) )] = 1",0,0,0);
	T = trans[1][59] = settr(104,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(104,2,55,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(104,2,58,0,0,"IF", 1, 2, 0);
	trans[1][55]	= settr(100,4,69,88,88,"(((c==2)&&(i==0)))", 1, 2, 0); /* m: 56 -> 69,0 */
	reached1[56] = 1;
	trans[1][56]	= settr(0,0,0,0,0,"assert((held[1]!=1))",0,0,0);
	trans[1][57]	= settr(0,0,0,0,0,"held[1] = 1",0,0,0);
	trans[1][60]	= settr(105,4,69,89,89,".(goto)", 1, 2, 0); /* m: 65 -> 0,69 */
	reached1[65] = 1;
	trans[1][58]	= settr(103,2,60,2,0,"else", 1, 2, 0);
	trans[1][65]	= settr(110,0,69,1,0,".(goto)", 1, 2, 0);
	trans[1][62]	= settr(107,2,63,2,0,"else", 1, 2, 0);
	trans[1][63]	= settr(108,0,11,1,0,"goto next", 1, 2, 0);
	T = trans[ 1][69] = settr(114,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(114,2,67,0,0,"ATOMIC", 1, 2, 0);
	trans[1][67]	= settr(112,4,116,90,90,"assert(((wgen[i]==g)&&!(ref[i])))", 1, 2, 0); /* m: 68 -> 0,116 */
	reached1[68] = 1;
	trans[1][68]	= settr(0,0,0,0,0,"ref[i] = 1",0,0,0);
	T = trans[1][116] = settr(161,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(161,0,114,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(161,0,115,0,0,"IF", 0, 2, 0);
	T = trans[ 1][114] = settr(159,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(159,0,70,0,0,"sub-sequence", 0, 2, 0);
	trans[1][70]	= settr(115,0,77,91,91,"dc = class", 1, 2, 0);
	T = trans[1][77] = settr(122,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(122,0,71,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(122,0,73,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(122,0,75,0,0,"IF", 0, 2, 0);
	trans[1][71]	= settr(116,0,101,92,92,"((dc==1))", 0, 2, 0); /* m: 72 -> 101,0 */
	reached1[72] = 1;
	trans[1][72]	= settr(0,0,0,0,0,"di = ( (((c==2)&&(i==1))) -> (2) : (i) )",0,0,0);
	trans[1][78]	= settr(123,0,101,1,0,".(goto)", 0, 2, 0);
	trans[1][73]	= settr(118,0,101,93,93,"(((dc==2)&&(( (((c==2)&&(i==1))) -> (2) : (i) )!=1)))", 0, 2, 0); /* m: 74 -> 101,0 */
	reached1[74] = 1;
	trans[1][74]	= settr(0,0,0,0,0,"di = ( ((( (((c==2)&&(i==1))) -> (2) : (i) )==2)) -> (1) : (0) )",0,0,0);
	trans[1][75]	= settr(120,0,113,2,0,"else", 0, 2, 0);
	trans[1][76]	= settr(121,0,113,1,0,"goto dropped", 0, 2, 0);
	T = trans[ 1][101] = settr(146,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(146,2,99,0,0,"ATOMIC", 1, 2, 0);
	T = trans[1][99] = settr(144,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(144,2,79,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(144,2,97,0,0,"IF", 1, 2, 0);
	trans[1][79]	= settr(124,2,84,94,0,"(((wgen[di]==g)&&ref[di]))", 1, 2, 0);
	T = trans[1][84] = settr(129,2,0,0,0,"IF", 1, 2, 0);
#if 0
	/* dead link: */
	T = T->nxt	= settr(129,2,80,0,0,"IF", 1, 2, 0);
#endif
	    T->nxt	= settr(129,2,83,0,0,"IF", 1, 2, 0);
	trans[1][80]	= settr(0,0,0,0,0,"(0)",0,0,0);
	trans[1][81]	= settr(126,2,96,95,95,"assert((drops==0))", 1, 2, 0); /* m: 82 -> 0,96 */
	reached1[82] = 1;
	trans[1][82]	= settr(0,0,0,0,0,"drops = (drops+1)",0,0,0);
	trans[1][85]	= settr(130,2,86,1,0,".(goto)", 1, 2, 0); /* m: 86 -> 0,96 */
	reached1[86] = 1;
	trans[1][83]	= settr(128,2,86,2,0,"else", 1, 2, 0);
	trans[1][86]	= settr(131,2,96,96,96,"ref[di] = 0", 1, 2, 0); /* m: 87 -> 0,96 */
	reached1[87] = 1;
	trans[1][87]	= settr(0,0,0,0,0,"wgen[di] = (g+1)",0,0,0);
	T = trans[ 1][96] = settr(141,0,0,0,0,"sub-sequence", 1, 2, 0);
	T->nxt	= settr(141,0,88,0,0,"sub-sequence", 1, 2, 0);
	trans[1][88]	= settr(133,2,94,97,97,"assert((held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0))", 1, 2, 0); /* m: 89 -> 0,94 */
	reached1[89] = 1;
	trans[1][89]	= settr(0,0,0,0,0,"held[( (((dc==2)&&(di==1))) ? (2) : (di) )] = 0",0,0,0);
	T = trans[1][94] = settr(139,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(139,2,90,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(139,2,93,0,0,"IF", 1, 2, 0);
	trans[1][90]	= settr(135,4,105,98,98,"(((dc==2)&&(di==0)))", 1, 2, 0); /* m: 91 -> 105,0 */
	reached1[91] = 1;
	trans[1][91]	= settr(0,0,0,0,0,"assert((held[1]!=0))",0,0,0);
	trans[1][92]	= settr(0,0,0,0,0,"held[1] = 0",0,0,0);
	trans[1][95]	= settr(140,4,105,99,99,".(goto)", 1, 2, 0); /* m: 100 -> 0,105 */
	reached1[100] = 1;
	trans[1][93]	= settr(138,2,95,2,0,"else", 1, 2, 0);
	trans[1][100]	= settr(145,0,105,1,0,".(goto)", 1, 2, 0);
	trans[1][97]	= settr(142,2,98,2,0,"else", 1, 2, 0);
	trans[1][98]	= settr(143,0,113,1,0,"goto dropped", 1, 2, 0);
	T = trans[ 1][105] = settr(150,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(150,2,102,0,0,"ATOMIC", 1, 2, 0);
	trans[1][102]	= settr(147,4,112,100,100,"assert(((state[di]==2)&&(sgen[di]==g)))", 1, 2, 0); /* m: 103 -> 0,112 */
	reached1[103] = 1;
	trans[1][103]	= settr(0,0,0,0,0,"state[di] = 1",0,0,0);
	trans[1][104]	= settr(0,0,0,0,0,"sgen[di] = (g+1)",0,0,0);
	T = trans[ 1][112] = settr(157,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(157,0,106,0,0,"sub-sequence", 0, 2, 0);
	trans[1][106]	= settr(151,0,110,101,101,"freebits = (freebits|(1<<di))", 1, 2, 0);
	T = trans[1][110] = settr(155,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(155,0,107,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(155,0,109,0,0,"IF", 0, 2, 0);
	trans[1][107]	= settr(152,0,108,102,0,"(!(classbit[dc]))", 1, 2, 0);
	trans[1][108]	= settr(153,0,113,103,103,"classbit[dc] = 1", 1, 2, 0);
	trans[1][111]	= settr(156,0,113,1,0,".(goto)", 0, 2, 0);
	trans[1][109]	= settr(154,0,113,2,0,"else", 0, 2, 0);
	trans[1][113]	= settr(158,0,137,1,0,"(1)", 0, 2, 0);
	trans[1][117]	= settr(162,0,137,1,0,".(goto)", 0, 2, 0);
	trans[1][115]	= settr(160,0,137,1,0,"(1)", 0, 2, 0);
	trans[1][118]	= settr(163,0,137,1,0,"goto out", 0, 2, 0);
	trans[1][119]	= settr(164,0,120,104,104,"freebits = (freebits|(1<<i))", 1, 2, 0);
	trans[1][120]	= settr(165,0,124,105,105,"dc = class", 1, 2, 0);
	T = trans[1][124] = settr(169,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(169,0,121,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(169,0,123,0,0,"IF", 0, 2, 0);
	trans[1][121]	= settr(166,0,122,106,0,"(((dc!=0)&&!(classbit[dc])))", 1, 2, 0);
	trans[1][122]	= settr(167,0,137,107,107,"classbit[dc] = 1", 1, 2, 0);
	trans[1][125]	= settr(170,0,137,1,0,".(goto)", 0, 2, 0);
	trans[1][123]	= settr(168,0,137,2,0,"else", 0, 2, 0);
	trans[1][126]	= settr(171,0,137,1,0,"goto out", 0, 2, 0);
	trans[1][127]	= settr(172,0,135,108,108,"classbit[c] = 0", 1, 2, 0);
	T = trans[1][135] = settr(180,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(180,0,128,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(180,0,134,0,0,"IF", 0, 2, 0);
	trans[1][128]	= settr(173,0,132,109,0,"((class==c))", 1, 2, 0);
	T = trans[1][132] = settr(177,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(177,0,129,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(177,0,131,0,0,"IF", 0, 2, 0);
	trans[1][129]	= settr(174,0,130,110,0,"(((freebits&( ((c==1)) -> (7) : (3) ))!=0))", 1, 2, 0);
	trans[1][130]	= settr(175,0,137,111,111,"classbit[c] = 1", 1, 2, 0);
	trans[1][133]	= settr(178,0,137,1,0,".(goto)", 0, 2, 0);
	trans[1][131]	= settr(176,0,137,2,0,"else", 0, 2, 0);
	trans[1][136]	= settr(181,0,137,1,0,".(goto)", 0, 2, 0);
	trans[1][134]	= settr(179,0,137,2,0,"else", 0, 2, 0);
	trans[1][137]	= settr(182,0,138,1,0,"(1)", 0, 2, 0);
	trans[1][138]	= settr(183,0,0,112,112,"-end-", 0, 3500, 0);

	/* proctype 0: dropper */

	trans[0] = (Trans **) emalloc(47*sizeof(Trans *));

	T = trans[ 0][45] = settr(44,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(44,0,1,0,0,"sub-sequence", 0, 2, 0);
	trans[0][1]	= settr(0,0,8,113,113,"dc = class", 1, 2, 0);
	T = trans[0][8] = settr(7,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(7,0,2,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(7,0,4,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(7,0,6,0,0,"IF", 0, 2, 0);
	trans[0][2]	= settr(1,0,32,114,114,"((dc==1))", 0, 2, 0); /* m: 3 -> 32,0 */
	reached0[3] = 1;
	trans[0][3]	= settr(0,0,0,0,0,"di = 2",0,0,0);
	trans[0][9]	= settr(8,0,32,1,0,".(goto)", 0, 2, 0);
	trans[0][4]	= settr(3,0,32,115,115,"(((dc==2)&&(2!=1)))", 0, 2, 0); /* m: 5 -> 32,0 */
	reached0[5] = 1;
	trans[0][5]	= settr(0,0,0,0,0,"di = ( ((2==2)) -> (1) : (0) )",0,0,0);
	trans[0][6]	= settr(5,0,44,2,0,"else", 0, 2, 0);
	trans[0][7]	= settr(6,0,44,1,0,"goto dropped", 0, 2, 0);
	T = trans[ 0][32] = settr(31,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(31,2,30,0,0,"ATOMIC", 1, 2, 0);
	T = trans[0][30] = settr(29,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(29,2,10,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(29,2,28,0,0,"IF", 1, 2, 0);
	trans[0][10]	= settr(9,2,15,116,0,"(((wgen[di]==1)&&ref[di]))", 1, 2, 0);
	T = trans[0][15] = settr(14,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(14,2,11,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(14,2,14,0,0,"IF", 1, 2, 0);
	trans[0][11]	= settr(10,2,27,117,117,"(1)", 1, 2, 0); /* m: 12 -> 27,0 */
	reached0[12] = 1;
	trans[0][12]	= settr(0,0,0,0,0,"assert((drops==0))",0,0,0);
	trans[0][13]	= settr(0,0,0,0,0,"drops = (drops+1)",0,0,0);
	trans[0][16]	= settr(15,2,17,1,0,".(goto)", 1, 2, 0); /* m: 17 -> 0,27 */
	reached0[17] = 1;
	trans[0][14]	= settr(13,2,17,2,0,"else", 1, 2, 0);
	trans[0][17]	= settr(16,2,27,118,118,"ref[di] = 0", 1, 2, 0); /* m: 18 -> 0,27 */
	reached0[18] = 1;
	trans[0][18]	= settr(0,0,0,0,0,"wgen[di] = (1+1)",0,0,0);
	T = trans[ 0][27] = settr(26,0,0,0,0,"sub-sequence", 1, 2, 0);
	T->nxt	= settr(26,0,19,0,0,"sub-sequence", 1, 2, 0);
	trans[0][19]	= settr(18,2,25,119,119,"assert((held[( (((dc==2)&&(di==1))) ? (2) : (di) )]!=0))", 1, 2, 0); /* m: 20 -> 0,25 */
	reached0[20] = 1;
	trans[0][20]	= settr(0,0,0,0,0,"held[( (((dc==2)&&(di==1))) ? (2) : (di) )] = 0",0,0,0);
	T = trans[0][25] = settr(24,2,0,0,0,"IF", 1, 2, 0);
	T = T->nxt	= settr(24,2,21,0,0,"IF", 1, 2, 0);
	    T->nxt	= settr(24,2,24,0,0,"IF", 1, 2, 0);
	trans[0][21]	= settr(20,4,36,120,120,"(((dc==2)&&(di==0)))", 1, 2, 0); /* m: 22 -> 36,0 */
	reached0[22] = 1;
	trans[0][22]	= settr(0,0,0,0,0,"assert((held[1]!=0))",0,0,0);
	trans[0][23]	= settr(0,0,0,0,0,"held[1] = 0",0,0,0);
	trans[0][26]	= settr(25,4,36,121,121,".(goto)", 1, 2, 0); /* m: 31 -> 0,36 */
	reached0[31] = 1;
	trans[0][24]	= settr(23,2,26,2,0,"else", 1, 2, 0);
	trans[0][31]	= settr(30,0,36,1,0,".(goto)", 1, 2, 0);
	trans[0][28]	= settr(27,2,29,2,0,"else", 1, 2, 0);
	trans[0][29]	= settr(28,0,44,1,0,"goto dropped", 1, 2, 0);
	T = trans[ 0][36] = settr(35,2,0,0,0,"ATOMIC", 1, 2, 0);
	T->nxt	= settr(35,2,33,0,0,"ATOMIC", 1, 2, 0);
	trans[0][33]	= settr(32,4,43,122,122,"assert(((state[di]==2)&&(sgen[di]==1)))", 1, 2, 0); /* m: 34 -> 0,43 */
	reached0[34] = 1;
	trans[0][34]	= settr(0,0,0,0,0,"state[di] = 1",0,0,0);
	trans[0][35]	= settr(0,0,0,0,0,"sgen[di] = (1+1)",0,0,0);
	T = trans[ 0][43] = settr(42,0,0,0,0,"sub-sequence", 0, 2, 0);
	T->nxt	= settr(42,0,37,0,0,"sub-sequence", 0, 2, 0);
	trans[0][37]	= settr(36,0,41,123,123,"freebits = (freebits|(1<<di))", 1, 2, 0);
	T = trans[0][41] = settr(40,0,0,0,0,"IF", 0, 2, 0);
	T = T->nxt	= settr(40,0,38,0,0,"IF", 0, 2, 0);
	    T->nxt	= settr(40,0,40,0,0,"IF", 0, 2, 0);
	trans[0][38]	= settr(37,0,39,124,0,"(!(classbit[dc]))", 1, 2, 0);
	trans[0][39]	= settr(38,0,44,125,125,"classbit[dc] = 1", 1, 2, 0);
	trans[0][42]	= settr(41,0,44,1,0,".(goto)", 0, 2, 0);
	trans[0][40]	= settr(39,0,44,2,0,"else", 0, 2, 0);
	trans[0][44]	= settr(43,0,46,1,0,"(1)", 0, 2, 0);
	trans[0][46]	= settr(45,0,0,126,126,"-end-", 0, 3500, 0);
	/* np_ demon: */
	trans[_NP_] = (Trans **) emalloc(3*sizeof(Trans *));
	T = trans[_NP_][0] = settr(9997,0,1,_T5,0,"(np_)", 1,2,0);
	    T->nxt	  = settr(9998,0,0,_T2,0,"(1)",   0,2,0);
	T = trans[_NP_][1] = settr(9999,0,1,_T5,0,"(np_)", 1,2,0);
}

Trans *
settr(	int t_id, int a, int b, int c, int d,
	char *t, int g, int tpe0, int tpe1)
{	Trans *tmp = (Trans *) emalloc(sizeof(Trans));

	tmp->atom  = a&(6|32);	/* only (2|8|32) have meaning */
	if (!g) tmp->atom |= 8;	/* no global references */
	tmp->st    = b;
	tmp->tpe[0] = tpe0;
	tmp->tpe[1] = tpe1;
	tmp->tp    = t;
	tmp->t_id  = t_id;
	tmp->forw  = c;
	tmp->back  = d;
	return tmp;
}

Trans *
cpytr(Trans *a)
{	Trans *tmp = (Trans *) emalloc(sizeof(Trans));

	int i;
	tmp->atom  = a->atom;
	tmp->st    = a->st;
#ifdef HAS_UNLESS
	tmp->e_trans = a->e_trans;
	for (i = 0; i < HAS_UNLESS; i++)
		tmp->escp[i] = a->escp[i];
#endif
	tmp->tpe[0] = a->tpe[0];
	tmp->tpe[1] = a->tpe[1];
	for (i = 0; i < 6; i++)
	{	tmp->qu[i] = a->qu[i];
		tmp->ty[i] = a->ty[i];
	}
	tmp->tp    = (char *) emalloc(strlen(a->tp)+1);
	strcpy(tmp->tp, a->tp);
	tmp->t_id  = a->t_id;
	tmp->forw  = a->forw;
	tmp->back  = a->back;
	return tmp;
}

#ifndef NOREDUCE
int
srinc_set(int n)
{	if (n <= 2) return LOCAL;
	if (n <= 2+  DELTA) return Q_FULL_F; /* 's' or nfull  */
	if (n <= 2+2*DELTA) return Q_EMPT_F; /* 'r' or nempty */
	if (n <= 2+3*DELTA) return Q_EMPT_T; /* empty */
	if (n <= 2+4*DELTA) return Q_FULL_T; /* full  */
	if (n ==   5*DELTA) return GLOBAL;
	if (n ==   6*DELTA) return TIMEOUT_F;
	if (n ==   7*DELTA) return ALPHA_F;
	Uerror("cannot happen srinc_class");
	return BAD;
}
int
srunc(int n, int m)
{	switch(m) {
	case Q_FULL_F: return n-2;
	case Q_EMPT_F: return n-2-DELTA;
	case Q_EMPT_T: return n-2-2*DELTA;
	case Q_FULL_T: return n-2-3*DELTA;
	case ALPHA_F:
	case TIMEOUT_F: return 257; /* non-zero, and > MAXQ */
	}
	Uerror("cannot happen srunc");
	return 0;
}
#endif
int cnt;
#ifdef HAS_UNLESS
int
isthere(Trans *a, int b)
{	Trans *t;
	for (t = a; t; t = t->nxt)
		if (t->t_id == b)
			return 1;
	return 0;
}
#endif
#ifndef NOREDUCE
int
mark_safety(Trans *t) /* for conditional safety */
{	int g = 0, i, j, k;

	if (!t) return 0;
	if (t->qu[0])
		return (t->qu[1])?2:1;	/* marked */

	for (i = 0; i < 2; i++)
	{	j = srinc_set(t->tpe[i]);
		if (j >= GLOBAL && j != ALPHA_F)
			return -1;
		if (j != LOCAL)
		{	k = srunc(t->tpe[i], j);
			if (g == 0
			||  t->qu[0] != k
			||  t->ty[0] != j)
			{	t->qu[g] = k;
				t->ty[g] = j;
				g++;
	}	}	}
	return g;
}
#endif
void
retrans(int n, int m, int is, short srcln[], uchar reach[], uchar lpstate[])
	/* process n, with m states, is=initial state */
{	Trans *T0, *T1, *T2, *T3;
	Trans *T4, *T5; /* t_reverse or has_unless */
	int i;
#if defined(HAS_UNLESS) || !defined(NOREDUCE)
	int k;
#endif
#ifndef NOREDUCE
	int g, h, j, aa;
#endif
#ifdef HAS_UNLESS
	int p;
#endif
	if (state_tables >= 4)
	{	printf("STEP 1 %s\n", 
			procname[n]);
		for (i = 1; i < m; i++)
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
			crack(n, i, T0, srcln);
		return;
	}
	do {
		for (i = 1, cnt = 0; i < m; i++)
		{	T2 = trans[n][i];
			T1 = T2?T2->nxt:(Trans *)0;
/* prescan: */		for (T0 = T1; T0; T0 = T0->nxt)
/* choice in choice */	{	if (T0->st && trans[n][T0->st]
				&&  trans[n][T0->st]->nxt)
					break;
			}
#if 0
		if (T0)
		printf("\tstate %d / %d: choice in choice\n",
		i, T0->st);
#endif
			if (T0)
			for (T0 = T1; T0; T0 = T0->nxt)
			{	T3 = trans[n][T0->st];
				if (!T3->nxt)
				{	T2->nxt = cpytr(T0);
					T2 = T2->nxt;
					imed(T2, T0->st, n, i);
					continue;
				}
				do {	T3 = T3->nxt;
					T2->nxt = cpytr(T3);
					T2 = T2->nxt;
					imed(T2, T0->st, n, i);
				} while (T3->nxt);
				cnt++;
			}
		}
	} while (cnt);
	if (state_tables >= 3)
	{	printf("STEP 2 %s\n", 
			procname[n]);
		for (i = 1; i < m; i++)
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
			crack(n, i, T0, srcln);
		return;
	}
	for (i = 1; i < m; i++)
	{	if (trans[n][i] && trans[n][i]->nxt) /* optimize */
		{	T1 = trans[n][i]->nxt;
#if 0
			printf("\t\tpull %d (%d) to %d\n",
			T1->st, T1->forw, i);
#endif
			srcln[i] = srcln[T1->st];	/* Oyvind Teig, 5.2.0 */

			if (!trans[n][T1->st]) continue;
			T0 = cpytr(trans[n][T1->st]);
			trans[n][i] = T0;
			reach[T1->st] = 1;
			imed(T0, T1->st, n, i);
			for (T1 = T1->nxt; T1; T1 = T1->nxt)
			{
#if 0
			printf("\t\tpull %d (%d) to %d\n",
				T1->st, T1->forw, i);
#endif
		/*		srcln[i] = srcln[T1->st];  gh: not useful */
				if (!trans[n][T1->st]) continue;
				T0->nxt = cpytr(trans[n][T1->st]);
				T0 = T0->nxt;
				reach[T1->st] = 1;
				imed(T0, T1->st, n, i);
	}	}	}
	if (state_tables >= 2)
	{	printf("STEP 3 %s\n", 
			procname[n]);
		for (i = 1; i < m; i++)
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
			crack(n, i, T0, srcln);
		return;
	}
#ifdef HAS_UNLESS
	for (i = 1; i < m; i++)
	{	if (!trans[n][i]) continue;
		/* check for each state i if an
		 * escape to some state p is defined
		 * if so, copy and mark p's transitions
		 * and prepend them to the transition-
		 * list of state i
		 */
	 if (!like_java) /* the default */
	 {	for (T0 = trans[n][i]; T0; T0 = T0->nxt)
		for (k = HAS_UNLESS-1; k >= 0; k--)
		{	if (p = T0->escp[k])
			for (T1 = trans[n][p]; T1; T1 = T1->nxt)
			{	if (isthere(trans[n][i], T1->t_id))
					continue;
				T2 = cpytr(T1);
				T2->e_trans = p;
				T2->nxt = trans[n][i];
				trans[n][i] = T2;
		}	}
	 } else /* outermost unless checked first */
	 {	T4 = T3 = (Trans *) 0;
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
		for (k = HAS_UNLESS-1; k >= 0; k--)
		{	if (p = T0->escp[k])
			for (T1 = trans[n][p]; T1; T1 = T1->nxt)
			{	if (isthere(trans[n][i], T1->t_id))
					continue;
				T2 = cpytr(T1);
				T2->nxt = (Trans *) 0;
				T2->e_trans = p;
				if (T3)	T3->nxt = T2;
				else	T4 = T2;
				T3 = T2;
		}	}
		if (T4)
		{	T3->nxt = trans[n][i];
			trans[n][i] = T4;
		}
	 }
	}
#endif
#ifndef NOREDUCE
	for (i = 1; i < m; i++)
	{	if (a_cycles)
		{ /* moves through these states are visible */
	#if PROG_LAB>0 && defined(HAS_NP)
			if (progstate[n][i])
				goto degrade;
			for (T1 = trans[n][i]; T1; T1 = T1->nxt)
				if (progstate[n][T1->st])
					goto degrade;
	#endif
			if (accpstate[n][i] || visstate[n][i])
				goto degrade;
			for (T1 = trans[n][i]; T1; T1 = T1->nxt)
				if (accpstate[n][T1->st])
					goto degrade;
		}
		T1 = trans[n][i];
		if (!T1) continue;
		g = mark_safety(T1);	/* V3.3.1 */
		if (g < 0) goto degrade; /* global */
		/* check if mixing of guards preserves reduction */
		if (T1->nxt)
		{	k = 0;
			for (T0 = T1; T0; T0 = T0->nxt)
			{	if (!(T0->atom&8))
					goto degrade;
				for (aa = 0; aa < 2; aa++)
				{	j = srinc_set(T0->tpe[aa]);
					if (j >= GLOBAL && j != ALPHA_F)
						goto degrade;
					if (T0->tpe[aa]
					&&  T0->tpe[aa]
					!=  T1->tpe[0])
						k = 1;
			}	}
			/* g = 0;	V3.3.1 */
			if (k)	/* non-uniform selection */
			for (T0 = T1; T0; T0 = T0->nxt)
			for (aa = 0; aa < 2; aa++)
			{	j = srinc_set(T0->tpe[aa]);
				if (j != LOCAL)
				{	k = srunc(T0->tpe[aa], j);
					for (h = 0; h < 6; h++)
						if (T1->qu[h] == k
						&&  T1->ty[h] == j)
							break;
					if (h >= 6)
					{	T1->qu[g%6] = k;
						T1->ty[g%6] = j;
						g++;
			}	}	}
			if (g > 6)
			{	T1->qu[0] = 0;	/* turn it off */
				printf("pan: warning, line %d, ",
					srcln[i]);
			 	printf("too many stmnt types (%d)",
					g);
			  	printf(" in selection\n");
			  goto degrade;
			}
		}
		/* mark all options global if >=1 is global */
		for (T1 = trans[n][i]; T1; T1 = T1->nxt)
			if (!(T1->atom&8)) break;
		if (T1)
degrade:	for (T1 = trans[n][i]; T1; T1 = T1->nxt)
			T1->atom &= ~8;	/* mark as unsafe */
		/* can only mix 'r's or 's's if on same chan */
		/* and not mixed with other local operations */
		T1 = trans[n][i];
		if (!T1 || T1->qu[0]) continue;
		j = T1->tpe[0];
		if (T1->nxt && T1->atom&8)
		{ if (j == 5*DELTA)
		  {	printf("warning: line %d ", srcln[i]);
			printf("mixed condition ");
			printf("(defeats reduction)\n");
			goto degrade;
		  }
		  for (T0 = T1; T0; T0 = T0->nxt)
		  for (aa = 0; aa < 2; aa++)
		  if  (T0->tpe[aa] && T0->tpe[aa] != j)
		  {	printf("warning: line %d ", srcln[i]);
			printf("[%d-%d] mixed %stion ",
				T0->tpe[aa], j, 
				(j==5*DELTA)?"condi":"selec");
			printf("(defeats reduction)\n");
			printf("	'%s' <-> '%s'\n",
				T1->tp, T0->tp);
			goto degrade;
		} }
	}
#endif
	for (i = 1; i < m; i++)
	{	T2 = trans[n][i];
		if (!T2
		||  T2->nxt
		||  strncmp(T2->tp, ".(goto)", 7)
		||  !stopstate[n][i])
			continue;
		stopstate[n][T2->st] = 1;
	}
	if (state_tables && !verbose)
	{	if (dodot)
		{	char buf[256], *q = buf, *p = procname[n];
			while (*p != '\0')
			{	if (*p != ':')
				{	*q++ = *p;
				}
				p++;
			}
			*q = '\0';
			printf("digraph ");
			switch (Btypes[n]) {
			case I_PROC:  printf("init {\n"); break;
			case N_CLAIM: printf("claim_%s {\n", buf); break;
			case E_TRACE: printf("notrace {\n"); break;
			case N_TRACE: printf("trace {\n"); break;
			default:      printf("p_%s {\n", buf); break;
			}
			printf("size=\"8,10\";\n");
			printf("  GT [shape=box,style=dotted,label=\"%s\"];\n", buf);
			printf("  GT -> S%d;\n", is);
		} else
		{	switch (Btypes[n]) {
			case I_PROC:  printf("init\n"); break;
			case N_CLAIM: printf("claim %s\n", procname[n]); break;
			case E_TRACE: printf("notrace assertion\n"); break;
			case N_TRACE: printf("trace assertion\n"); break;
			default:      printf("proctype %s\n", procname[n]); break;
		}	}
		for (i = 1; i < m; i++)
		{	reach[i] = 1;
		}
		tagtable(n, m, is, srcln, reach);
		if (dodot) printf("}\n");
	} else
	for (i = 1; i < m; i++)
	{	int nrelse;
		if (Btypes[n] != N_CLAIM)
		{	for (T0 = trans[n][i]; T0; T0 = T0->nxt)
			{	if (T0->st == i
				&& strcmp(T0->tp, "(1)") == 0)
				{	printf("error: proctype '%s' ",
						procname[n]);
		  			printf("line %d, state %d: has un",
						srcln[i], i);
					printf("conditional self-loop\n");
					pan_exit(1);
		}	}	}
		nrelse = 0;
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
		{	if (strcmp(T0->tp, "else") == 0)
				nrelse++;
		}
		if (nrelse > 1)
		{	printf("error: proctype '%s' state",
				procname[n]);
		  	printf(" %d, inherits %d", i, nrelse);
		  	printf(" 'else' stmnts\n");
			pan_exit(1);
	}	}
#if !defined(LOOPSTATE) && !defined(BFS_PAR)
	if (state_tables)
#endif
	do_dfs(n, m, is, srcln, reach, lpstate);

	if (!t_reverse)
	{	return;
	}
	/* process n, with m states, is=initial state -- reverse list */
	if (!state_tables && Btypes[n] != N_CLAIM)
	{	for (i = 1; i < m; i++)
		{	Trans *Tx = (Trans *) 0; /* list of escapes */
			Trans *Ty = (Trans *) 0; /* its tail element */
			T1 = (Trans *) 0; /* reversed list */
			T2 = (Trans *) 0; /* its tail */
			T3 = (Trans *) 0; /* remembers possible 'else' */

			/* find unless-escapes, they should go first */
			T4 = T5 = T0 = trans[n][i];
	#ifdef HAS_UNLESS
			while (T4 && T4->e_trans) /* escapes are first in orig list */
			{	T5 = T4;	  /* remember predecessor */
				T4 = T4->nxt;
			}
	#endif
			/* T4 points to first non-escape, T5 to its parent, T0 to original list */
			if (T4 != T0)		 /* there was at least one escape */
			{	T3 = T5->nxt;		 /* start of non-escapes */
				T5->nxt = (Trans *) 0;	 /* separate */
				Tx = T0;		 /* start of the escapes */
				Ty = T5;		 /* its tail */
				T0 = T3;		 /* the rest, to be reversed */
			}
			/* T0 points to first non-escape, Tx to the list of escapes, Ty to its tail */

			/* first tail-add non-escape transitions, reversed */
			T3 = (Trans *) 0;
			for (T5 = T0; T5; T5 = T4)
			{	T4 = T5->nxt;
	#ifdef HAS_UNLESS
				if (T5->e_trans)
				{	printf("error: cannot happen!\n");
					continue;
				}
	#endif
				if (strcmp(T5->tp, "else") == 0)
				{	T3 = T5;
					T5->nxt = (Trans *) 0;
				} else
				{	T5->nxt = T1;
					if (!T1) { T2 = T5; }
					T1 = T5;
			}	}
			/* T3 points to a possible else, which is removed from the list */
			/* T1 points to the reversed list so far (without escapes) */
			/* T2 points to the tail element -- where the else should go */
			if (T2 && T3)
			{	T2->nxt = T3;	/* add else */
			} else
			{	if (T3) /* there was an else, but there's no tail */
				{	if (!T1)	/* and no reversed list */
					{	T1 = T3; /* odd, but possible */
					} else		/* even stranger */
					{	T1->nxt = T3;
			}	}	}

			/* add in the escapes, to that they appear at the front */
			if (Tx && Ty) { Ty->nxt = T1; T1 = Tx; }

			trans[n][i] = T1;
			/* reversed, with escapes first and else last */
	}	}
	if (state_tables && verbose)
	{	printf("FINAL proctype %s\n", 
			procname[n]);
		for (i = 1; i < m; i++)
		for (T0 = trans[n][i]; T0; T0 = T0->nxt)
			crack(n, i, T0, srcln);
	}
}
void
imed(Trans *T, int v, int n, int j)	/* set intermediate state */
{	progstate[n][T->st] |= progstate[n][v];
	accpstate[n][T->st] |= accpstate[n][v];
	stopstate[n][T->st] |= stopstate[n][v];
	mapstate[n][j] = T->st;
}
void
tagtable(int n, int m, int is, short srcln[], uchar reach[])
{	Trans *z;

	if (is >= m || !trans[n][is]
	||  is <= 0 || reach[is] == 0)
		return;
	reach[is] = 0;
	if (state_tables)
	for (z = trans[n][is]; z; z = z->nxt)
	{	if (dodot)
			dot_crack(n, is, z);
		else
			crack(n, is, z, srcln);
	}

	for (z = trans[n][is]; z; z = z->nxt)
	{
#ifdef HAS_UNLESS
		int i, j;
#endif
		tagtable(n, m, z->st, srcln, reach);
#ifdef HAS_UNLESS
		for (i = 0; i < HAS_UNLESS; i++)
		{	j = trans[n][is]->escp[i];
			if (!j) break;
			tagtable(n, m, j, srcln, reach);
		}
#endif
	}
}

extern Trans *t_id_lkup[];

void
dfs_table(int n, int m, int is, short srcln[], uchar reach[], uchar lpstate[])
{	Trans *z;

	if (is >= m || is <= 0 || !trans[n][is])
		return;
	if ((reach[is] & (4|8|16)) != 0)
	{	if ((reach[is] & (8|16)) == 16)	/* on stack, not yet recorded */
		{	lpstate[is] = 1;
			reach[is] |= 8; /* recorded */
			if (state_tables && verbose)
			{	printf("state %d line %d is a loopstate\n", is, srcln[is]);
		}	}
		return;
	}
	reach[is] |= (4|16);	/* visited | onstack */
	for (z = trans[n][is]; z; z = z->nxt)
	{	t_id_lkup[z->t_id] = z;
#ifdef HAS_UNLESS
		int i, j;
#endif
		dfs_table(n, m, z->st, srcln, reach, lpstate);
#ifdef HAS_UNLESS
		for (i = 0; i < HAS_UNLESS; i++)
		{	j = trans[n][is]->escp[i];
			if (!j) break;
			dfs_table(n, m, j, srcln, reach, lpstate);
		}
#endif
	}
	reach[is] &= ~16; /* no longer on stack */
}
void
do_dfs(int n, int m, int is, short srcln[], uchar reach[], uchar lpstate[])
{	int i;
	dfs_table(n, m, is, srcln, reach, lpstate);
	for (i = 0; i < m; i++)
		reach[i] &= ~(4|8|16);
}
void
crack(int n, int j, Trans *z, short srcln[])
{	int i;

	if (!z) return;
	printf("	state %3d -(tr %3d)-> state %3d  ",
		j, z->forw, z->st);
	printf("[id %3d tp %3d", z->t_id, z->tpe[0]);
	if (z->tpe[1]) printf(",%d", z->tpe[1]);
#ifdef HAS_UNLESS
	if (z->e_trans)
		printf(" org %3d", z->e_trans);
	else if (state_tables >= 2)
	for (i = 0; i < HAS_UNLESS; i++)
	{	if (!z->escp[i]) break;
		printf(" esc %d", z->escp[i]);
	}
#endif
	printf("]");
	printf(" [%s%s%s%s%s] %s:%d => ",
		z->atom&6?"A":z->atom&32?"D":"-",
		accpstate[n][j]?"a" :"-",
		stopstate[n][j]?"e" : "-",
		progstate[n][j]?"p" : "-",
		z->atom & 8 ?"L":"G",
		PanSource, srcln[j]);
	for (i = 0; z->tp[i]; i++)
		if (z->tp[i] == '\n')
			printf("\\n");
		else
			putchar(z->tp[i]);
	if (verbose && z->qu[0])
	{	printf("\t[");
		for (i = 0; i < 6; i++)
			if (z->qu[i])
				printf("(%d,%d)",
				z->qu[i], z->ty[i]);
		printf("]");
	}
	printf("\n");
	fflush(stdout);
}
/* spin -a m.pml; cc -o pan pan.c; ./pan -D | dot -Tps > foo.ps; ps2pdf foo.ps */
void
dot_crack(int n, int j, Trans *z)
{	int i;

	if (!z) return;
	printf("	S%d -> S%d  [color=black", j, z->st);

	if (z->atom&6) printf(",style=dashed");
	else if (z->atom&32) printf(",style=dotted");
	else if (z->atom&8) printf(",style=solid");
	else printf(",style=bold");

	printf(",label=\"");
	for (i = 0; z->tp[i]; i++)
	{	if (z->tp[i] == '\\'
		&&  z->tp[i+1] == 'n')
		{	i++; printf(" ");
		} else
		{	putchar(z->tp[i]);
	}	}
	printf("\"];\n");
	if (accpstate[n][j]) printf("  S%d [color=red,style=bold];\n", j);
	else if (progstate[n][j]) printf("  S%d [color=green,style=bold];\n", j);
	if (stopstate[n][j]) printf("  S%d [color=blue,style=bold,shape=box];\n", j);
}

#ifdef VAR_RANGES
#define BYTESIZE	32	/* 2^8 : 2^3 = 256:8 = 32 */

typedef struct Vr_Ptr {
	char	*nm;
	uchar	vals[BYTESIZE];
	struct Vr_Ptr *nxt;
} Vr_Ptr;
Vr_Ptr *ranges = (Vr_Ptr *) 0;

void
logval(char *s, int v)
{	Vr_Ptr *tmp;

	if (v<0 || v > 255) return;
	for (tmp = ranges; tmp; tmp = tmp->nxt)
		if (!strcmp(tmp->nm, s))
			goto found;
	tmp = (Vr_Ptr *) emalloc(sizeof(Vr_Ptr));
	tmp->nxt = ranges;
	ranges = tmp;
	tmp->nm = s;
found:
	tmp->vals[(v)/8] |= 1<<((v)%8);
}

void
dumpval(uchar X[], int range)
{	int w, x, i, j = -1;

	for (w = i = 0; w < range; w++)
	for (x = 0; x < 8; x++, i++)
	{
from:		if ((X[w] & (1<<x)))
		{	printf("%d", i);
			j = i;
			goto upto;
	}	}
	return;
	for (w = 0; w < range; w++)
	for (x = 0; x < 8; x++, i++)
	{
upto:		if (!(X[w] & (1<<x)))
		{	if (i-1 == j)
				printf(", ");
			else
				printf("-%d, ", i-1);
			goto from;
	}	}
	if (j >= 0 && j != 255)
		printf("-255");
}

void
dumpranges(void)
{	Vr_Ptr *tmp;
	printf("\nValues assigned within ");
	printf("interval [0..255]:\n");
	for (tmp = ranges; tmp; tmp = tmp->nxt)
	{	printf("\t%s\t: ", tmp->nm);
		dumpval(tmp->vals, BYTESIZE);
		printf("\n");
	}
}
#endif
