(** * Sessions

    Several programs on the same data sets, as [model/sessions.py] runs them.
    Each has tables, partitions and counters of its own; what they share are
    the roots' budgets.  A session steps with the budgets that the others leave
    it: the budget less what the others were charged, each rounded up to whole
    units, and no more than its analyst's cap leaves.

    Who acts next, and what it does, is up to a scheduler that sees everything
    that is shown.  It also says when a root arrives; the root's data may depend
    on everything that was shown before.

    - [sessions_dp]: all of it together is budget(x)-private at every root x, and
      [ledger_event_dp]: for every set of traces, however the sessions toss coins;
    - [caps_hold]: what an analyst's sessions were charged is within the cap. *)

Require Import Reals Lra Lia List Arith FunctionalExtensionality.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.General Fpinq.Events.
Import ListNotations.
Open Scope R_scope.

(** Changing one summand. *)
Lemma sum_change (f g : nat -> R) i l : NoDup l -> In i l -> (forall j, j <> i -> f j = g j) ->
  sum f l = sum g l - g i + f i.
Proof.
  induction l as [|j l IH]; intros N H E; [contradiction|]. inversion N; subst. simpl. destruct H as [->|H].
  - rewrite (sum_ext f g l); [ring|]. intros k Hk. apply E. intros ->. contradiction.
  - rewrite IH by auto. rewrite (E j); [ring|]. intros ->. contradiction.
Qed.

(** ** One session, whatever budgets it steps with *)

Section Step.
  Variable S : System.
  Variable roots : nat.
  Notation State := (State S).

  Notation well := (well S roots).

  Lemma step_under b s s' d a : well s d -> similar S s s' d -> exists d',
    let u := snd (step S roots b s a) in
    well u d' /\ similar S u (snd (step S roots b s' a)) d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
    ((forall x, (x < roots)%nat -> counters (accounts S u) x <= b x) \/
     (forall x, counters (accounts S u) x = counters (accounts S s) x)) /\
    forall o, chances S (fst (step S roots b s a)) o <=
      chances S (fst (step S roots b s' a)) o * exp (psi S u d' - psi S s d).
  Proof.
    intros H K. pose proof K as [HA HT]. set (own := counters (accounts S s)).
    assert (still : forall o, exists d', well s d' /\ similar S s s' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
      ((forall x, (x < roots)%nat -> counters (accounts S s) x <= b x) \/
       (forall x, counters (accounts S s) x = counters (accounts S s) x)) /\
      forall o', chances S (Shows S o) o' <= chances S (Shows S o) o' * exp (psi S s d' - psi S s d)).
    { intros o. exists d. repeat (split; auto). intros o'. rewrite exp_nothing. lra. }
    destruct a; cbn [step].
    - apply still.
    - destruct (keeps_advances _ _ _ _ _ _ _ _ _ _ (assign_keeps S roots own s s' d t F ts H K)) as (d' & H1 & H2 & H3 & H4). exists d'.
      assert (E : accounts S (snd (assign S s t F ts)) = accounts S s).
      { unfold assign. destruct (combine _ _ _); reflexivity. }
      cbv zeta. unfold well. rewrite E. repeat (split; auto).
    - destruct (keeps_advances _ _ _ _ _ _ _ _ _ _ (partition_keeps S roots own s s' d t f k dest H K)) as (d' & H1 & H2 & H3 & H4). exists d'.
      cbv zeta. repeat (split; auto).
    - destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht. destruct (Rlt_dec 0 e) as [He|]; [|apply still].
      destruct (fits roots b (charge (accounts S s) (sensitivity_of S s t) e)) eqn:Hfit; [|apply still].
      pose proof (fits_within _ _ _ Hfit) as HB.
      assert (Hb : sound S roots b s d).
      { apply (rebudget S roots own); [exact H|]. intros x Hx. eapply Rle_trans; [|apply (HB x Hx)]. destruct H.
        apply (charge_grows roots); auto. lra. }
      destruct (query_advances S roots b (mass_private S) s s' d t f Qs e Hb K He Hfit) as (d' & H1 & H2 & H3 & H4). exists d'.
      cbv zeta. cbn [query fst snd]. split; [|auto]. apply (rebudget S roots b); [exact H1|]. intros. apply Rle_refl.
    - unfold ask_scale. destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht. apply still.
    - unfold ask_budget. rewrite <- HA. apply still.
    - destruct (Rlt_dec 0 e); [|apply still]. unfold ask_price. destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht.
      apply still.
  Qed.
End Step.

(** ** All sessions *)

Section Sessions.
  Variable S : System.
  Variables (roots m : nat) (budget : vector) (empty : table S).
  Notation State := (State S).
  Notation Observation := (Observation S).

  (** What everybody may know of the sessions: their accounts. *)
  Definition Public := nat -> Accounts.

  (** The budgets that session i steps with. *)
  Variable allowed : Public -> nat -> vector.

  (** What a group of sessions was charged at x, and session i's own part left
      out. *)
  Definition charged (members : nat -> bool) (A : Public) (x : nat) : R :=
    sum (fun j => if members j then counters (A j) x else 0) (seq 0 m).
  Definition others (members : nat -> bool) (A : Public) (i x : nat) : R :=
    sum (fun j => if (members j && negb (Nat.eqb j i))%bool then counters (A j) x else 0) (seq 0 m).

  (** At root x, a member steps with what the other members leave of the limit,
      or with less. *)
  Definition respects (members : nat -> bool) (x : nat) (limit : R) : Prop :=
    forall A i, (i < m)%nat -> members i = true -> allowed A i x <= limit - others members A i x.

  Definition everybody (_ : nat) : bool := true.
  Hypothesis budget_respected : forall x, (x < roots)%nat -> respects everybody x (budget x).

  (** ** The scheduler *)

  Inductive Event := Acts (i : nat) (a : Action S) | Arrives (x : nat).
  Record Scheduler := { all : Type; happens : all -> Event; seen : all -> Observation -> all }.
  Variable scheduler : Scheduler.

  Definition Joint := nat -> State.
  Definition public (J : Joint) : Public := fun j => accounts S (J j).
  Definition update (J : Joint) (i : nat) (s : State) : Joint := fun j => if Nat.eqb j i then s else J j.

  (** The roots' data, where and when they arrive. *)
  Definition Data := all scheduler -> nat -> table S.

  Definition shown (p : all scheduler) (J : Joint) : Reply S :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then fst (step S roots (allowed (public J) i) (J i) a) else Shows S (Refused S)
    | Arrives x => if Nat.ltb x roots then Shows S (Tau S) else Shows S (Refused S)
    end.
  Definition then_ (D : Data) (p : all scheduler) (J : Joint) : Joint :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then update J i (snd (step S roots (allowed (public J) i) (J i) a)) else J
    | Arrives x => if Nat.ltb x roots then fun j => arrive S (J j) x (D p x) else J
    end.

  Fixpoint chance (D : Data) (n : nat) (p : all scheduler) (J : Joint) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => chances S (shown p J) o * chance D n (seen scheduler p o) (then_ D p J) t
    | _, _ => 0
    end.
  Fixpoint after (D : Data) (p : all scheduler) (J : Joint) (t : list Observation) : Joint :=
    match t with [] => J | o :: t => after D (seen scheduler p o) (then_ D p J) t end.

  Lemma shown_runnable p J : runnable S (shown p J).
  Proof.
    unfold shown. destruct (happens scheduler p) as [i a|x]; [|destruct (Nat.ltb x roots); exact I].
    destruct (Nat.ltb i m); [apply step_runnable|exact I].
  Qed.

  Theorem sessions_sum_to_one D n : forall p J, distribution (chance D n p J).
  Proof.
    induction n as [|n IH]; intros p J.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (observation_dec S) (chances S (shown p J))
        (fun o => chance D n (seen scheduler p o) (then_ D p J)))].
      + intros []; reflexivity.
      + apply chances_distribution, shown_runnable.
      + intros o. apply IH.
  Qed.

  Lemma seq_in i : (i < m)%nat -> In i (seq 0 m).
  Proof. intros. apply in_seq. lia. Qed.

  Lemma charged_update members J i s x : (i < m)%nat -> members i = true ->
    charged members (public (update J i s)) x = others members (public J) i x + counters (accounts S s) x.
  Proof.
    intros Hi Hm. unfold charged, others.
    rewrite (sum_change _ (fun j => if (members j && negb (Nat.eqb j i))%bool then counters (public J j) x else 0) i);
      auto using seq_NoDup, seq_in.
    - unfold public, update. rewrite Nat.eqb_refl, Hm. simpl. ring.
    - intros j Hj. unfold public, update. destruct (Nat.eqb_spec j i); [contradiction|]. rewrite Bool.andb_true_r.
      reflexivity.
  Qed.

  Lemma charged_ext members J K x : (forall j, members j = true -> counters (accounts S (J j)) x = counters (accounts S (K j)) x) ->
    charged members (public J) x = charged members (public K) x.
  Proof. intros H. apply sum_ext. intros j _. unfold public. destruct (members j) eqn:E; auto. Qed.

  (** *** Two runs *)

  Section Two.
    Variables (D D' : Data) (d0 : vector).
    Hypothesis near_data : forall p x, (x < roots)%nat -> INR (distance S (D p x) (D' p x)) <= d0 x.

    Record invariant (J J' : Joint) (ds : nat -> vector) : Prop := {
      each_well : forall j, well S roots (J j) (ds j);
      each_similar : forall j, similar S (J j) (J' j) (ds j);
      each_roots : forall j x, (x < roots)%nat -> ds j x = d0 x }.

    Definition psis (J : Joint) (ds : nat -> vector) : R := sum (fun j => psi S (J j) (ds j)) (seq 0 m).

    Lemma same_public J J' ds : invariant J J' ds -> public J = public J'.
    Proof. intros H. apply functional_extensionality. intros j. apply (each_similar _ _ _ H j). Qed.

    (** One event: the invariant stays, the odds move by no more than the
        potential, and a group that respects a limit stays within it. *)
    Lemma one_event p J J' ds : invariant J J' ds -> exists ds', invariant (then_ D p J) (then_ D' p J') ds' /\
      (forall o, chances S (shown p J) o <= chances S (shown p J') o * exp (psis (then_ D p J) ds' - psis J ds)) /\
      (forall members x limit, (x < roots)%nat -> respects members x limit ->
        charged members (public J) x <= limit -> charged members (public (then_ D p J)) x <= limit).
    Proof.
      intros H. unfold then_, shown. rewrite <- (same_public J J' ds H).
      assert (still : forall o, exists ds', invariant J J' ds' /\
        (forall o', chances S (Shows S o) o' <= chances S (Shows S o) o' * exp (psis J ds' - psis J ds)) /\
        (forall members x limit, (x < roots)%nat -> respects members x limit ->
          charged members (public J) x <= limit -> charged members (public J) x <= limit)).
      { intros o. exists ds. split; [exact H|]. split; [|auto]. intros o'. rewrite exp_nothing. lra. }
      destruct (happens scheduler p) as [i a|x].
      - destruct (Nat.ltb_spec i m) as [Hi|Hi]; [|apply still].
        destruct (step_under S roots (allowed (public J) i) (J i) (J' i) (ds i) a (each_well _ _ _ H i)
          (each_similar _ _ _ H i)) as (d' & Hw & Hs & Hd & Hb & HC).
        set (u := snd (step S roots (allowed (public J) i) (J i) a)) in *.
        set (u' := snd (step S roots (allowed (public J) i) (J' i) a)) in *.
        exists (fun j => if Nat.eqb j i then d' else ds j). split; [split|split].
        + intros j. unfold update. destruct (Nat.eqb j i); [exact Hw|apply (each_well _ _ _ H)].
        + intros j. unfold update. destruct (Nat.eqb j i); [exact Hs|apply (each_similar _ _ _ H)].
        + intros j x Hx. destruct (Nat.eqb_spec j i) as [->|]; [rewrite Hd by exact Hx|]; apply (each_roots _ _ _ H); auto.
        + intros o. replace (psis (update J i u) (fun j => if Nat.eqb j i then d' else ds j) - psis J ds)
            with (psi S u d' - psi S (J i) (ds i)); [apply HC|].
          unfold psis. rewrite (sum_change (fun j => psi S (update J i u j) (if Nat.eqb j i then d' else ds j))
            (fun j => psi S (J j) (ds j)) i) by
            (auto using seq_NoDup, seq_in; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
          unfold update. rewrite !Nat.eqb_refl. ring.
        + intros members x limit Hx HR HL. destruct Hb as [Hb|Hb].
          * destruct (members i) eqn:Em.
            -- rewrite charged_update by assumption. specialize (Hb x Hx). specialize (HR (public J) i Hi Em). lra.
            -- rewrite (charged_ext members (update J i u) J); auto. intros j Hj. unfold update.
               destruct (Nat.eqb_spec j i); congruence.
          * rewrite (charged_ext members (update J i u) J); auto. intros j Hj. unfold update.
            destruct (Nat.eqb_spec j i) as [->|]; auto.
      - destruct (Nat.ltb_spec x roots) as [Hx|Hx]; [|apply still].
        exists ds. split; [split|split].
        + intros j. apply arrive_well; [apply (each_well _ _ _ H)|exact Hx].
        + intros j. apply (arrive_similar S roots); [apply (each_well _ _ _ H)|apply (each_similar _ _ _ H)|exact Hx|].
          rewrite (each_roots _ _ _ H j x Hx). apply near_data, Hx.
        + apply (each_roots _ _ _ H).
        + intros o. unfold psis, psi. simpl. rewrite exp_nothing. lra.
        + auto.
    Qed.

    Theorem all_events t : forall p J J' ds, invariant J J' ds -> exists ds',
      invariant (after D p J t) (after D' p J' t) ds' /\
      chance D (length t) p J t <= chance D' (length t) p J' t * exp (psis (after D p J t) ds' - psis J ds) /\
      (forall members x limit, (x < roots)%nat -> respects members x limit ->
        charged members (public J) x <= limit -> charged members (public (after D p J t)) x <= limit).
    Proof.
      induction t as [|o t IH]; intros p J J' ds H; simpl.
      - exists ds. split; [exact H|]. split; [|auto]. rewrite exp_nothing. lra.
      - destruct (one_event p J J' ds H) as (d1 & H1 & L1 & R1).
        destruct (IH (seen scheduler p o) _ _ d1 H1) as (d2 & H2 & L2 & R2).
        exists d2. split; [exact H2|]. split; [|intros; eapply R2; eauto].
        set (b := psis (then_ D p J) d1) in *. set (c := psis (after D (seen scheduler p o) (then_ D p J) t) d2) in *.
        replace (c - psis J ds) with ((b - psis J ds) + (c - b)) by ring. rewrite exp_plus.
        match goal with |- _ <= ?x * ?y * (?e * ?f) => replace (x * y * (e * f)) with ((x * e) * (y * f)) by ring end.
        apply Rmult_le_compat; auto.
        + apply (chances_distribution S), shown_runnable.
        + apply sessions_sum_to_one.
    Qed.
  End Two.

  (** *** From nothing *)

  (** No tables, no charges; the roots there are from the start arrive first. *)
  Definition nothing : Joint :=
    fun _ => {| environment := fun _ => (empty, fun _ => 0); accounts := opening roots |}.

  Lemma nothing_charged members x : charged members (public nothing) x = 0.
  Proof. apply sum_zero. intros j _. unfold public, nothing. simpl. destruct (members j); reflexivity. Qed.

  Lemma nothing_invariant d0 : (forall x, 0 <= d0 x) -> invariant d0 nothing nothing (fun _ => d0).
  Proof.
    intros Hd. split.
    - intros j. split; simpl; auto; try (apply certificate_opening).
      + constructor.
      + intros. lra.
      + constructor.
      + intros. unfold sensitivity_of. simpl. lra.
    - intros j. split; [reflexivity|]. intros t. unfold sensitivity_of, table_of. simpl.
      split; [reflexivity|]. rewrite distance_refl, dot_zero. simpl. lra.
    - reflexivity.
  Qed.

  Lemma sum_dot l (J : Joint) d : sum (fun j => dot roots (counters (accounts S (J j))) d) l =
    dot roots (fun x => sum (fun j => if everybody j then counters (accounts S (J j)) x else 0) l) d.
  Proof.
    unfold everybody. induction l as [|j l IH]; simpl; [symmetry; apply dot_zero|]. rewrite IH.
    clear. induction roots as [|r IHr]; simpl; [ring|]. rewrite <- IHr. ring.
  Qed.

  (** With what all sessions were charged in the exponent. *)
  Theorem sessions_dp_spent D D' d0 p t : (forall x, 0 <= d0 x) ->
    (forall q x, (x < roots)%nat -> INR (distance S (D q x) (D' q x)) <= d0 x) ->
    chance D (length t) p nothing t <= chance D' (length t) p nothing t *
      exp (dot roots (charged everybody (public (after D p nothing t))) d0).
  Proof.
    intros Hd HD. destruct (all_events D D' d0 HD t p _ _ _ (nothing_invariant d0 Hd)) as (ds & H & L & _).
    eapply Rle_trans; [exact L|]. apply Rmult_le_compat_l; [apply sessions_sum_to_one|]. apply exp_mono.
    assert (P0 : psis nothing (fun _ => d0) = 0).
    { unfold psis. apply sum_zero. intros j _. unfold psi, Psi, potential. simpl. rewrite dot_zero. ring. }
    rewrite P0, Rminus_0_r. set (J := after D p nothing t) in *. unfold charged, public.
    rewrite <- (sum_dot (seq 0 m) J d0). unfold psis. apply sum_le. intros j _.
    pose proof (each_well _ _ _ _ H j) as Hs. destruct Hs. unfold psi, Psi.
    eapply Rle_trans; [apply (potential_le_roots roots); eassumption|].
    rewrite (dot_ext roots _ (counters (accounts S (J j))) (ds j) d0); [lra|]. intros x Hx. split; auto.
    apply (each_roots _ _ _ _ H j x Hx).
  Qed.

  (** A group of sessions never goes beyond a limit that it respects. *)
  Theorem limits_hold D p t members x limit : (x < roots)%nat -> respects members x limit -> 0 <= limit ->
    charged members (public (after D p nothing t)) x <= limit.
  Proof.
    intros Hx HR HL. destruct (all_events D D (fun _ => 0)) with (t := t) (p := p) (J := nothing) (J' := nothing)
      (ds := fun _ : nat => fun _ : nat => 0) as (ds & _ & _ & R).
    - intros. rewrite distance_refl. simpl. lra.
    - apply nothing_invariant. intros. lra.
    - apply R; auto. rewrite nothing_charged. exact HL.
  Qed.

  Theorem sessions_dp D D' d0 p n t : (forall x, (x < roots)%nat -> 0 <= budget x) -> (forall x, 0 <= d0 x) ->
    (forall q x, (x < roots)%nat -> INR (distance S (D q x) (D' q x)) <= d0 x) ->
    chance D n p nothing t <= chance D' n p nothing t * exp (dot roots budget d0).
  Proof.
    intros HB Hd HD. destruct (Nat.eq_dec (length t) n) as [<-|Hn].
    - eapply Rle_trans; [apply (sessions_dp_spent D D' d0); assumption|].
      apply Rmult_le_compat_l; [apply sessions_sum_to_one|]. apply exp_mono, dot_mono; auto.
      intros. apply limits_hold; auto.
    - assert (Z : forall D n p J t, length t <> n -> chance D n p J t = 0).
      { clear. induction n as [|n IH]; intros p J [|o t] H; simpl in *; try lia; auto. rewrite IH by lia. ring. }
      rewrite !Z by assumption. lra.
  Qed.
End Sessions.

(** ** What the ledger allows

    [model/sessions.py: left_to]: what the others took is counted in
    units, rounded up. *)

Section Ledger.
  Variables (roots m : nat) (budget : vector).
  Variable analyst : nat -> nat.                       (* of a session *)
  Variable cap : nat -> nat -> option R.               (* of an analyst, at a root *)
  Variable grain : R.
  Hypothesis grain_pos : 0 < grain.

  Definition rounded_up (r : R) : R := - IZR (Int_part (- (r * grain))) / grain.

  Lemma rounded_up_ge r : r <= rounded_up r.
  Proof.
    unfold rounded_up. pose proof (base_Int_part (- (r * grain))) as [H _].
    apply Rmult_le_reg_r with grain; [exact grain_pos|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  Definition taken (members : nat -> bool) (A : Public) (i x : nat) : R :=
    sum (fun j => if (members j && negb (Nat.eqb j i))%bool then rounded_up (counters (A j) x) else 0) (seq 0 m).

  Definition same (i j : nat) : bool := Nat.eqb (analyst i) (analyst j).

  Definition left_to (A : Public) (i : nat) : vector := fun x =>
    let left := budget x - taken everybody A i x in
    match cap (analyst i) x with Some c => Rmin left (c - taken (same i) A i x) | None => left end.

  Lemma taken_ge members A i x : others m members A i x <= taken members A i x.
  Proof.
    apply sum_le. intros j _. destruct (members j && negb (Nat.eqb j i))%bool; [apply rounded_up_ge|lra].
  Qed.

  Lemma left_respects_budget x : respects m left_to everybody x (budget x).
  Proof.
    intros A i _ _. pose proof (taken_ge everybody A i x). unfold left_to.
    destruct (cap (analyst i) x); [eapply Rle_trans; [apply Rmin_l|]|]; lra.
  Qed.

  Lemma left_respects_cap a x c : cap a x = Some c -> respects m left_to (fun j => Nat.eqb a (analyst j)) x c.
  Proof.
    intros Hc A i _ Hm. apply Nat.eqb_eq in Hm. subst a. unfold left_to. rewrite Hc.
    eapply Rle_trans; [apply Rmin_r|]. pose proof (taken_ge (same i) A i x). unfold same in *. lra.
  Qed.

  (** All sessions together are private as the budgets say. *)
  Theorem ledger_dp (S : System) empty scheduler D D' d0 p n t : (forall x, (x < roots)%nat -> 0 <= budget x) ->
    (forall x, 0 <= d0 x) -> (forall q x, (x < roots)%nat -> INR (distance S (D q x) (D' q x)) <= d0 x) ->
    chance S roots m left_to scheduler D n p (nothing S roots empty) t <=
      chance S roots m left_to scheduler D' n p (nothing S roots empty) t * exp (dot roots budget d0).
  Proof. intros. apply sessions_dp; auto using left_respects_budget. Qed.

  (** For every set of traces, and however the sessions toss coins: whatever
      they draw in n steps is drawn beforehand, from any set of seeds with any
      weights. *)
  Theorem ledger_event_dp (S : System) empty scheduler D D' d0 n {seed} (weight : seed -> R) (start : seed -> all S scheduler)
      (event : seed * list (Observation S) -> Prop) u v :
    (forall x, (x < roots)%nat -> 0 <= budget x) -> (forall x, 0 <= d0 x) ->
    (forall q x, (x < roots)%nat -> INR (distance S (D q x) (D' q x)) <= d0 x) -> (forall s, 0 <= weight s) ->
    let run D := fun '(s, t) => weight s * chance S roots m left_to scheduler D n (start s) (nothing S roots empty) t in
    chance_of (run D) event u -> chance_of (run D') event v -> u <= v * exp (dot roots budget d0).
  Proof.
    intros HB Hd HD Hw run. apply chance_private; [left; apply exp_pos|]. intros [s t]. unfold run.
    rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply Hw|]. apply ledger_dp; assumption.
  Qed.

  (** What an analyst's sessions were charged is within the analyst's cap. *)
  Theorem caps_hold (S : System) empty scheduler D p t a x c : (x < roots)%nat -> cap a x = Some c -> 0 <= c ->
    charged m (fun j => Nat.eqb a (analyst j))
      (public S (after S roots m left_to scheduler D p (nothing S roots empty) t)) x <= c.
  Proof. intros Hx Hc H0. apply limits_hold; auto using left_respects_cap. Qed.
End Ledger.
