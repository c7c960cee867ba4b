(** * Sessions that share budgets of both notions

    Several programs, each with tables, partitions and books of its own, as
    [Sessions] has them for the pure case.  A session steps with any budgets that
    leave room for what the others were charged in the book of each root, in that
    book's unit.  Who acts next, and when a root arrives and with which data, is up
    to a scheduler that sees everything that is shown.

    [shared_within]: all of it together is as close, in each book's notion, as the
    budgets say; of a root with a δ but for that δ, [shared_nearly]. *)

Require Import Reals Lra Lia List Arith FunctionalExtensionality.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.Approximate Fpinq.Books.
Require Fpinq.General Fpinq.Sessions.
Import ListNotations.
Open Scope R_scope.

Section Shared.
  Variable S : Tables.
  Variable rates : Rates S.
  Variables (roots m : nat) (budget : nat -> vector) (book_of : nat -> nat) (keys_of : nat -> option nat) (kind : nat -> purpose)
    (empty : table S).
  Notation State := (State S).
  Notation Observation := (General.Observation S).
  Notation step := (Books.step S rates roots).

  (** What everybody may know: the books of all sessions. *)
  Definition Public := nat -> nat -> Accounts.
  (** What session i may pay at a root, in a book. *)
  Variable allowed : Public -> nat -> nat -> vector.

  Definition others (A : Public) (i b x : nat) : R :=
    sum (fun j => if Nat.eqb j i then 0 else counters (A j b) x) (seq 0 m).
  Definition respects : Prop := forall A i b x, (i < m)%nat -> (x < roots)%nat -> allowed A i b x <= budget b x - others A i b x.
  Hypothesis budget_respected : respects.

  (** What a group of sessions was charged at x, and session i's own part left out;
      a member of the group steps with what the others leave of a limit, or with less. *)
  Definition charged (members : nat -> bool) (A : Public) (b x : nat) : R :=
    sum (fun j => if members j then counters (A j b) x else 0) (seq 0 m).
  Definition other_members (members : nat -> bool) (A : Public) (i b x : nat) : R :=
    sum (fun j => if (members j && negb (Nat.eqb j i))%bool then counters (A j b) x else 0) (seq 0 m).
  Definition keeps_to (members : nat -> bool) (b x : nat) (limit : R) : Prop :=
    forall A i, (i < m)%nat -> members i = true -> allowed A i b x <= limit - other_members members A i b x.

  (** ** The scheduler *)

  Inductive Event := Acts (i : nat) (a : Action S) | Arrives (x : nat).
  Record Scheduler := { all : Type; happens : all -> Event; seen : all -> Observation -> all }.
  Variable scheduler : Scheduler.

  Definition Joint := nat -> State.
  Definition public (J : Joint) : Public := fun j => book S (J j).
  Definition update (J : Joint) (i : nat) (s : State) : Joint := fun j => if Nat.eqb j i then s else J j.
  Definition Data := all scheduler -> nat -> table S.

  Definition arrive (s : State) (x : nat) (T : table S) : State :=
    {| environment := General.bind S (environment S s) x (T, unit x); book := book S s |}.

  Definition stepped (J : Joint) (i : nat) (a : Action S) : General.Reply S * State :=
    step (allowed (public J) i) book_of keys_of kind (J i) a.

  Definition shown (p : all scheduler) (J : Joint) : General.Reply S :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then fst (stepped J i a) else General.Shows S (General.Refused S)
    | Arrives x => if Nat.ltb x roots then General.Shows S (General.Tau S) else General.Shows S (General.Refused S)
    end.
  Definition then_ (D : Data) (p : all scheduler) (J : Joint) : Joint :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then update J i (snd (stepped J i a)) else J
    | Arrives x => if Nat.ltb x roots then fun j => arrive (J j) x (D p x) else J
    end.

  Fixpoint chance (D : Data) (n : nat) (p : all scheduler) (J : Joint) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => General.chances S (shown p J) o * chance D n (seen scheduler p o) (then_ D p J) t
    | _, _ => 0
    end.

  Fixpoint after (D : Data) (p : all scheduler) (J : Joint) (t : list Observation) : Joint :=
    match t with [] => J | o :: t => after D (seen scheduler p o) (then_ D p J) t end.

  Lemma shown_runnable p J : General.runnable S (shown p J).
  Proof.
    unfold shown. destruct (happens scheduler p) as [i a|x]; [|destruct (Nat.ltb x roots); exact I].
    destruct (Nat.ltb i m); [apply step_runnable|exact I].
  Qed.

  Theorem shared_sum_to_one D n : forall p J, distribution (chance D n p J).
  Proof.
    induction n as [|n IH]; intros p J.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (General.observation_dec S) (General.chances S (shown p J))
        (fun o => chance D n (seen scheduler p o) (then_ D p J)))].
      + intros []; reflexivity.
      + apply General.chances_distribution, shown_runnable.
      + intros o. apply IH.
  Qed.

  (** ** Two runs *)

  Lemma same_books b J J' ds : (forall j, Books.similar S b (J j) (J' j) (ds j)) -> public J = public J'.
  Proof. intros H. apply functional_extensionality. intros j. apply (H j). Qed.

  (** What all sessions paid at x. *)
  Definition in_all (J : Joint) (b x : nat) : R := sum (fun j => counters (book S (J j) b) x) (seq 0 m).

  Definition kept (J : Joint) (b : nat) : Prop := forall x, (x < roots)%nat -> own book_of keys_of b x = true -> in_all J b x <= budget b x.

  (** Within the budgets, or as before. *)
  Lemma event_pays D p J b : (forall x, (x < roots)%nat -> own book_of keys_of b x = true ->
      forall members limit, keeps_to members b x limit -> charged members (public J) b x <= limit ->
      charged members (public (then_ D p J)) b x <= limit) /\ (kept J b -> kept (then_ D p J) b).
  Proof.
    unfold then_, stepped. destruct (happens scheduler p) as [i a|y].
    2:{ destruct (Nat.ltb y roots); split; auto. }
    destruct (Nat.ltb_spec i m) as [Hi|Hi]; [|split; auto].
    set (u := snd (step (allowed (public J) i) book_of keys_of kind (J i) a)) in *.
    assert (Hin : In i (seq 0 m)) by (apply in_seq; lia).
    pose proof (step_pays S rates roots (allowed (public J) i) book_of keys_of kind b (J i) a) as Hb. fold u in Hb. split.
    - intros x Hx Ho members limit HR HL. unfold charged in *.
      rewrite (Sessions.sum_change _ (fun j => if members j then counters (public J j b) x else 0) i) by
        (auto using seq_NoDup; intros j Hj; unfold public, update; destruct (Nat.eqb_spec j i); congruence).
      unfold public at 3, update. rewrite Nat.eqb_refl.
      destruct (members i) eqn:Em; [|lra]. unfold public at 2.
      destruct Hb as [Hb|Hb]; [|rewrite Hb; lra]. specialize (Hb x Hx Ho). specialize (HR (public J) i Hi Em).
      unfold other_members in HR.
      rewrite (Sessions.sum_change _ (fun j => if members j then counters (public J j b) x else 0) i) in HR.
      + rewrite Nat.eqb_refl, Em in HR. simpl in HR. unfold public in *. lra.
      + apply seq_NoDup.
      + exact Hin.
      + intros j Hj. destruct (Nat.eqb_spec j i); [congruence|]. rewrite Bool.andb_true_r. reflexivity.
    - intros W x Hx Ho. unfold in_all.
      rewrite (Sessions.sum_change _ (fun j => counters (book S (J j) b) x) i) by
        (auto using seq_NoDup; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
      unfold update at 1. rewrite Nat.eqb_refl. specialize (W x Hx Ho). unfold in_all in W.
      destruct Hb as [Hb|Hb]; [|rewrite Hb; lra].
      specialize (Hb x Hx Ho). pose proof (budget_respected (public J) i b x Hi Hx) as R. unfold others in R.
      rewrite (Sessions.sum_change (fun j => if Nat.eqb j i then 0 else counters (public J j b) x)
        (fun j => counters (book S (J j) b) x) i) in R.
      + rewrite Nat.eqb_refl in R. lra.
      + apply seq_NoDup.
      + exact Hin.
      + intros j Hj. unfold public. destruct (Nat.eqb_spec j i); congruence.
  Qed.

  Section TwoRuns.
    Variables (b : nat) (n : notion) (delta_book : option nat).
    Hypothesis b_kind : kind b = Loss n.
    Hypothesis b_used : exists x, (x < roots)%nat /\ book_of x = b.
    Notation paired := (Books.paired S roots book_of keys_of kind b delta_book).
    Notation psi := (Books.psi S b).
    Notation keys_psi := (Books.keys_psi S delta_book).

    (** Two databases, and how far apart the roots are at the most. *)
    Variables (D D' : Data) (d0 : vector).
    Hypothesis d0_nonneg : forall x, 0 <= d0 x.
    Hypothesis d0_reach : within_reach roots book_of keys_of kind b delta_book d0.
    Hypothesis near_data : forall p x, (x < roots)%nat -> INR (distance S (D p x) (D' p x)) <= d0 x.
    Hypothesis budget_nonneg : forall b x, (x < roots)%nat -> 0 <= budget b x.

    Definition keys_kept (J : Joint) : Prop := match delta_book with Some c => kept J c | None => True end.

    Record invariant (J J' : Joint) (ds dks : nat -> vector) : Prop := {
      each_paired : forall j, paired (J j) (J' j) (ds j) (dks j);
      each_root : forall j x, (x < roots)%nat -> ds j x = d0 x;
      each_key : forall j x, (x < roots)%nat -> dks j x = d0 x;
      all_kept : kept J b;
      all_keys : keys_kept J }.

    Definition psis (J : Joint) (ds : nat -> vector) : R := sum (fun j => psi (J j) (ds j)) (seq 0 m).
    Definition keys_psis (J : Joint) (dks : nat -> vector) : R := sum (fun j => keys_psi (J j) (dks j)) (seq 0 m).

    Lemma psis_in c J ds : (forall j, sound S roots book_of keys_of kind c (J j) (ds j)) -> (forall j x, (x < roots)%nat -> ds j x = d0 x) ->
      about roots book_of keys_of kind c d0 -> kept J c -> sum (fun j => Books.psi S c (J j) (ds j)) (seq 0 m) <= dot roots (budget c) d0.
    Proof.
      intros H E A W. apply Rle_trans with (dot roots (in_all J c) d0).
      - assert (F : sum (fun j => dot roots (counters (book S (J j) c)) d0) (seq 0 m) = dot roots (in_all J c) d0).
        { unfold in_all. generalize (seq 0 m) as l. induction l as [|j l IH]; simpl; [symmetry; apply dot_zero|]. rewrite IH.
          clear. induction roots as [|r IHr]; simpl; [ring|]. rewrite <- IHr. ring. }
        rewrite <- F. apply sum_le. intros j _.
        eapply Rle_trans; [apply (psi_paid S roots book_of keys_of kind c _ _ (H j))|]. unfold paid.
        rewrite (dot_ext roots _ (counters (book S (J j) c)) (ds j) d0); [lra|]. intros x Hx. split; auto.
      - assert (K : forall k, (k <= roots)%nat -> dot k (in_all J c) d0 <= dot k (budget c) d0); [|apply K; lia].
        induction k as [|k IH]; intros Hk; simpl; [lra|]. specialize (IH ltac:(lia)). apply Rplus_le_compat; [exact IH|].
        destruct (own book_of keys_of c k) eqn:Ho.
        + apply Rmult_le_compat_r; [apply d0_nonneg|]. apply W; [lia|exact Ho].
        + destruct A as [A _]. rewrite (A k) by (assumption || lia). lra.
    Qed.

    Lemma psis_within J J' ds dks : invariant J J' ds dks -> psis J ds <= dot roots (budget b) d0.
    Proof.
      intros []. apply psis_in; auto; [|apply d0_reach]. intros j. apply (each_paired0 j).
    Qed.

    Definition keys_set : R := match delta_book with Some c => dot roots (budget c) d0 | None => 0 end.

    Lemma keys_psis_within J J' ds dks : invariant J J' ds dks -> keys_psis J dks <= keys_set.
    Proof.
      intros []. unfold keys_psis, keys_set, Books.keys_psi, keys_kept in *. destruct d0_reach as [_ R]. destruct delta_book as [c|].
      - destruct R as [_ R]. apply psis_in; auto. intros j. destruct (each_paired0 j) as [_ _ B]. apply B.
      - rewrite sum_zero; [lra|]. reflexivity.
    Qed.

    Lemma one_event p J J' ds dks : invariant J J' ds dks -> exists ds' dks', invariant (then_ D p J) (then_ D' p J') ds' dks' /\
      0 <= keys_psis (then_ D p J) dks' - keys_psis J dks /\
      alike n (fun _ => psis (then_ D p J) ds' - psis J ds) (core_chances S rates (shown p J) (shown p J')) (core_chances S rates (shown p J') (shown p J)) /\
      alike n (fun _ => psis (then_ D p J) ds' - psis J ds) (core_chances S rates (shown p J') (shown p J)) (core_chances S rates (shown p J) (shown p J')) /\
      (forall o, (1 - (keys_psis (then_ D p J) dks' - keys_psis J dks)) * core_chances S rates (shown p J) (shown p J') o <=
        General.chances S (shown p J) o) /\
      (forall o, (1 - (keys_psis (then_ D p J) dks' - keys_psis J dks)) * core_chances S rates (shown p J') (shown p J) o <=
        General.chances S (shown p J') o).
    Proof.
      intros H. pose proof (event_pays D p J b) as [_ Pb]. specialize (Pb (all_kept _ _ _ _ H)).
      assert (Pk : keys_kept (then_ D p J)).
      { pose proof (all_keys _ _ _ _ H) as W. unfold keys_kept in *. destruct delta_book as [c|]; auto. apply (event_pays D p J c), W. }
      revert Pb Pk. unfold then_, shown, stepped.
      rewrite <- (same_books b J J' ds (fun j => paired_similar _ _ _ _ _ _ _ _ _ _ _ (each_paired _ _ _ _ H j))).
      assert (Same : forall o, alike n (fun _ => 0) (core_chances S rates (General.Shows S o) (General.Shows S o))
        (core_chances S rates (General.Shows S o) (General.Shows S o))).
      { intros o q Hq. apply (close_same q (looks_proper _ _ Hq)), certain_distribution. }
      assert (still : forall o, exists ds' dks', invariant J J' ds' dks' /\ 0 <= keys_psis J dks' - keys_psis J dks /\
        alike n (fun _ => psis J ds' - psis J ds) (core_chances S rates (General.Shows S o) (General.Shows S o))
          (core_chances S rates (General.Shows S o) (General.Shows S o)) /\
        alike n (fun _ => psis J ds' - psis J ds) (core_chances S rates (General.Shows S o) (General.Shows S o))
          (core_chances S rates (General.Shows S o) (General.Shows S o)) /\
        (forall q, (1 - (keys_psis J dks' - keys_psis J dks)) * core_chances S rates (General.Shows S o) (General.Shows S o) q <=
          General.chances S (General.Shows S o) q) /\
        (forall q, (1 - (keys_psis J dks' - keys_psis J dks)) * core_chances S rates (General.Shows S o) (General.Shows S o) q <=
          General.chances S (General.Shows S o) q)).
      { intros o. exists ds, dks. split; [exact H|]. replace (psis J ds - psis J ds) with 0 by ring.
        replace (keys_psis J dks - keys_psis J dks) with 0 by ring. split; [lra|]. split; [apply Same|]. split; [apply Same|].
        split; intros q; simpl; lra. }
      destruct (happens scheduler p) as [i a|x].
      - destruct (Nat.ltb_spec i m) as [Hi|Hi]; [|intros _ _; apply still]. intros Pb Pk.
        destruct (step_advances S rates roots (allowed (public J) i) book_of keys_of kind b n delta_book b_kind b_used
          (J i) (J' i) (ds i) (dks i) a (each_paired _ _ _ _ H i)) as (d' & dk' & Hp & Ed & Ek & G & L1 & L2 & B1 & B2).
        set (u := snd (step (allowed (public J) i) book_of keys_of kind (J i) a)) in *.
        set (u' := snd (step (allowed (public J) i) book_of keys_of kind (J' i) a)) in *.
        assert (Hin : In i (seq 0 m)) by (apply in_seq; lia).
        exists (fun j => if Nat.eqb j i then d' else ds j), (fun j => if Nat.eqb j i then dk' else dks j).
        assert (E : psis (update J i u) (fun j => if Nat.eqb j i then d' else ds j) - psis J ds = psi u d' - psi (J i) (ds i)).
        { unfold psis. rewrite (Sessions.sum_change (fun j => psi (update J i u j) (if Nat.eqb j i then d' else ds j))
            (fun j => psi (J j) (ds j)) i) by
            (auto using seq_NoDup; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
          unfold update. rewrite !Nat.eqb_refl. ring. }
        assert (F : keys_psis (update J i u) (fun j => if Nat.eqb j i then dk' else dks j) - keys_psis J dks = keys_psi u dk' - keys_psi (J i) (dks i)).
        { unfold keys_psis. rewrite (Sessions.sum_change (fun j => keys_psi (update J i u j) (if Nat.eqb j i then dk' else dks j))
            (fun j => keys_psi (J j) (dks j)) i) by
            (auto using seq_NoDup; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
          unfold update. rewrite !Nat.eqb_refl. ring. }
        rewrite E, F. split; [split|].
        + intros j. unfold update. destruct (Nat.eqb j i); [exact Hp|apply (each_paired _ _ _ _ H)].
        + intros j x Hx. destruct (Nat.eqb_spec j i) as [->|]; [rewrite Ed by exact Hx|]; apply (each_root _ _ _ _ H); auto.
        + intros j x Hx. destruct (Nat.eqb_spec j i) as [->|]; [rewrite Ek by exact Hx|]; apply (each_key _ _ _ _ H); auto.
        + exact Pb.
        + exact Pk.
        + auto.
      - destruct (Nat.ltb_spec x roots) as [Hx|Hx]; [|intros _ _; apply still]. intros Pb Pk.
        assert (Arr : forall c dc j, sound S roots book_of keys_of kind c (J j) dc -> Books.similar S c (J j) (J' j) dc ->
          (forall y, (y < roots)%nat -> dc y = d0 y) ->
          sound S roots book_of keys_of kind c (arrive (J j) x (D p x)) dc /\
          Books.similar S c (arrive (J j) x (D p x)) (arrive (J' j) x (D' p x)) dc).
        { intros c dc j Hs [HB HK] E. split.
          - destruct Hs. split; auto. apply (General.arrive_well S roots (view S (J j) c)); auto.
          - split; [exact HB|]. apply (General.arrive_similar S roots (view S (J j) c) (view S (J' j) c)); auto.
            + apply Hs.
            + rewrite (E x Hx). apply near_data, Hx. }
        exists ds, dks. split; [split|].
        + intros j. destruct (each_paired _ _ _ _ H j) as [Hs Ks B].
          destruct (Arr b (ds j) j Hs Ks (each_root _ _ _ _ H j)) as [Hs1 Ks1]. split; [exact Hs1|exact Ks1|].
          unfold beside in *. destruct delta_book as [c|]; [|exact B]. destruct B as (Hc & Hs2 & Ks2 & E2).
          destruct (Arr c (dks j) j Hs2 Ks2 (each_key _ _ _ _ H j)) as [Hs3 Ks3]. split; [exact Hc|]. split; [exact Hs3|]. split; [exact Ks3|exact E2].
        + apply (each_root _ _ _ _ H).
        + apply (each_key _ _ _ _ H).
        + exact Pb.
        + exact Pk.
        + assert (E : psis (fun j => arrive (J j) x (D p x)) ds = psis J ds) by reflexivity.
          assert (F : keys_psis (fun j => arrive (J j) x (D p x)) dks = keys_psis J dks) by reflexivity.
          rewrite E, F. replace (psis J ds - psis J ds) with 0 by ring.
          replace (keys_psis J dks - keys_psis J dks) with 0 by ring. split; [lra|]. split; [apply Same|]. split; [apply Same|].
          split; intros q; simpl; lra.
    Qed.

    (** The law of the traces whose every answer is from a core. *)
    Fixpoint core_chance (X Y : Data) (k : nat) (p : all scheduler) (J J' : Joint) (t : list Observation) : R :=
      match k, t with
      | O, [] => 1
      | Datatypes.S k, o :: t => core_chances S rates (shown p J) (shown p J') o *
          core_chance X Y k (seen scheduler p o) (then_ X p J) (then_ Y p J') t
      | _, _ => 0
      end.

    Lemma core_chance_distribution X Y k : forall p J J', distribution (core_chance X Y k p J J').
    Proof.
      induction k as [|k IH]; intros p J J'.
      - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
      - eapply distribution_ext; [|apply (sequence_distribution (General.observation_dec S) (core_chances S rates (shown p J) (shown p J'))
          (fun o => core_chance X Y k (seen scheduler p o) (then_ X p J) (then_ Y p J')))].
        + intros []; reflexivity.
        + apply core_chances_distribution, shown_runnable.
        + intros o. apply IH.
    Qed.

    Theorem shared_cores k : forall p J J' ds dks, invariant J J' ds dks ->
      alike n (fun _ => dot roots (budget b) d0 - psis J ds) (core_chance D D' k p J J') (core_chance D' D k p J' J) /\
      alike n (fun _ => dot roots (budget b) d0 - psis J ds) (core_chance D' D k p J' J) (core_chance D D' k p J J') /\
      forall t, (1 - (keys_set - keys_psis J dks)) * core_chance D D' k p J J' t <= chance D k p J t /\
        (1 - (keys_set - keys_psis J dks)) * core_chance D' D k p J' J t <= chance D' k p J' t.
    Proof.
      induction k as [|k IH]; intros p J J' ds dks H; pose proof (psis_within J J' ds dks H) as W; pose proof (keys_psis_within J J' ds dks H) as Q.
      - assert (C : alike n (fun _ => dot roots (budget b) d0 - psis J ds) (@ended Observation) ended).
        { intros o Ho. pose proof (looks_proper _ _ Ho) as Hp. apply (close_weaken o Hp (fun _ => 0)); try apply ended_distribution; [intros _; lra|].
          apply (close_same o Hp), ended_distribution. }
        split; [|split].
        + intros o Ho. specialize (C o Ho). revert C. apply (close_ext o (looks_proper _ _ Ho)); auto; intros []; reflexivity.
        + intros o Ho. specialize (C o Ho). revert C. apply (close_ext o (looks_proper _ _ Ho)); auto; intros []; reflexivity.
        + intros []; simpl; lra.
      - destruct (one_event p J J' ds dks H) as (d1 & dk1 & H1 & G & L1 & L2 & B1 & B2).
        pose proof (keys_psis_within _ _ _ _ H1) as Q1.
        assert (Go : forall X Y K L, alike n (fun _ => psis (then_ D p J) d1 - psis J ds) (core_chances S rates (shown p K) (shown p L)) (core_chances S rates (shown p L) (shown p K)) ->
          (forall o, alike n (fun _ => dot roots (budget b) d0 - psis (then_ D p J) d1) (core_chance X Y k (seen scheduler p o) (then_ X p K) (then_ Y p L))
            (core_chance Y X k (seen scheduler p o) (then_ Y p L) (then_ X p K))) ->
          alike n (fun _ => dot roots (budget b) d0 - psis J ds) (core_chance X Y (Datatypes.S k) p K L) (core_chance Y X (Datatypes.S k) p L K)).
        { intros X Y K L A I o Ho. pose proof (looks_proper _ _ Ho) as Hp.
          pose proof (close_sequence o Hp (General.observation_dec S) (fun _ => psis (then_ D p J) d1 - psis J ds)
            (fun _ _ => dot roots (budget b) d0 - psis (then_ D p J) d1) (core_chances S rates (shown p K) (shown p L)) (core_chances S rates (shown p L) (shown p K))
            (fun x => core_chance X Y k (seen scheduler p x) (then_ X p K) (then_ Y p L))
            (fun x => core_chance Y X k (seen scheduler p x) (then_ Y p L) (then_ X p K))
            (nonnegative _ (core_chances_distribution S rates _ _ (shown_runnable p K)))
            (nonnegative _ (core_chances_distribution S rates _ _ (shown_runnable p L)))
            (fun x => nonnegative _ (core_chance_distribution X Y k _ _ _)) (fun x => nonnegative _ (core_chance_distribution Y X k _ _ _))
            (A o Ho) (fun x => I x o Ho)) as C.
          apply (close_weaken o Hp (fun t : list Observation => match t with [] => 0 | _ =>
            psis (then_ D p J) d1 - psis J ds + (dot roots (budget b) d0 - psis (then_ D p J) d1) end)); try apply core_chance_distribution.
          + intros []; lra.
          + revert C. apply (close_ext o Hp); intros []; reflexivity. }
        split; [apply Go; [exact L1|intros o; apply (IH _ _ _ _ _ H1)]|]. split; [apply Go; [exact L2|intros o; apply (IH _ _ _ _ _ H1)]|].
        intros [|o t]; [simpl; lra|]. cbn [core_chance chance].
        destruct (IH (seen scheduler p o) _ _ _ _ H1) as (_ & _ & C). destruct (C t) as [C1 C2].
        replace (keys_set - keys_psis J dks) with ((keys_psis (then_ D p J) dk1 - keys_psis J dks) + (keys_set - keys_psis (then_ D p J) dk1)) by ring.
        split; apply parts_multiply; auto; try lra; try apply shared_sum_to_one; try apply core_chance_distribution;
          try (apply core_chances_distribution, shown_runnable); apply General.chances_distribution, shown_runnable.
    Qed.

    (** No tables, no charges; the roots that there are arrive first. *)
    Definition nothing : Joint := fun _ => {| environment := fun _ => (empty, fun _ => 0); book := fun _ => opening roots |}.

    Lemma nothing_sound c : about roots book_of keys_of kind c d0 -> forall j, sound S roots book_of keys_of kind c (nothing j) d0.
    Proof.
      intros A j. split; auto. split; simpl; auto; try (apply certificate_opening); try constructor;
        intros; unfold General.sensitivity_of; simpl; lra.
    Qed.

    Lemma nothing_similar c j : Books.similar S c (nothing j) (nothing j) d0.
    Proof.
      split; [reflexivity|]. split; [reflexivity|]. intros t. unfold General.sensitivity_of, General.table_of. simpl.
      split; [reflexivity|]. rewrite distance_refl, dot_zero. simpl. lra.
    Qed.

    Lemma nothing_kept c : kept nothing c.
    Proof. intros x Hx _. unfold in_all. rewrite sum_zero by reflexivity. auto. Qed.

    Lemma nothing_invariant : invariant nothing nothing (fun _ => d0) (fun _ => d0).
    Proof.
      destruct d0_reach as [A B]. split; auto using nothing_kept.
      - intros j. split; [apply nothing_sound, A|apply nothing_similar|]. unfold beside. destruct delta_book as [c|]; [|exact B].
        destruct B as [Hc B]. split; [exact Hc|]. split; [apply nothing_sound, B|]. split; [apply nothing_similar|reflexivity].
      - unfold keys_kept. destruct delta_book; auto using nothing_kept.
    Qed.

    Lemma nothing_psi c d : Books.psi S c (nothing 0%nat) d = 0.
    Proof. unfold Books.psi, Psi, potential. simpl. rewrite dot_zero. ring. Qed.

    Theorem shared_nearly k p : nearly n (fun _ => dot roots (budget b) d0) keys_set (chance D k p nothing) (chance D' k p nothing).
    Proof.
      destruct (shared_cores k p _ _ _ _ nothing_invariant) as (C1 & C2 & B).
      assert (Z : psis nothing (fun _ => d0) = 0) by (apply sum_zero; intros j _; apply (nothing_psi b d0)).
      assert (Y : keys_psis nothing (fun _ => d0) = 0).
      { apply sum_zero. intros j _. unfold Books.keys_psi. destruct delta_book as [c|]; [apply (nothing_psi c d0)|reflexivity]. }
      rewrite Z, Rminus_0_r in C1, C2. rewrite Y, Rminus_0_r in B.
      exists (core_chance D D' k p nothing nothing), (core_chance D' D k p nothing nothing).
      split; [apply core_chance_distribution|]. split; [apply core_chance_distribution|]. split; [apply B|]. split; [apply B|]. auto.
    Qed.
  End TwoRuns.

  Theorem shared_within b n D D' d0 k p : kind b = Loss n -> (exists x, (x < roots)%nat /\ book_of x = b) -> (forall x, 0 <= d0 x) ->
    within_reach roots book_of keys_of kind b None d0 -> (forall p x, (x < roots)%nat -> INR (distance S (D p x) (D' p x)) <= d0 x) ->
    (forall b x, (x < roots)%nat -> 0 <= budget b x) ->
    alike n (fun _ => dot roots (budget b) d0) (chance D k p nothing) (chance D' k p nothing).
  Proof.
    intros Hk Hb H0 HR HD HB. apply (nearly_exact (list_eq_dec (General.observation_dec S))); try apply shared_sum_to_one.
    exact (shared_nearly b n None Hk Hb D D' d0 H0 HR HD HB k p).
  Qed.

  Lemma limits_kept D b t : forall p J, forall members x limit, (x < roots)%nat ->
    own book_of keys_of b x = true -> keeps_to members b x limit -> charged members (public J) b x <= limit ->
    charged members (public (after D p J t)) b x <= limit.
  Proof.
    induction t as [|o t IH]; intros p J members x limit Hx Ho HR HL; simpl; auto.
    apply IH; auto. apply (event_pays D p J b); auto.
  Qed.

  (** A group of sessions never goes beyond a limit that it keeps to: an analyst's,
      say, beyond the cap. *)
  Theorem limits_hold D p t members b x limit : (x < roots)%nat -> own book_of keys_of b x = true ->
    keeps_to members b x limit -> 0 <= limit -> charged members (public (after D p nothing t)) b x <= limit.
  Proof.
    intros Hx Ho HR HL. apply limits_kept; auto.
    unfold charged. rewrite sum_zero; auto. intros j _. unfold public, nothing. simpl. destruct (members j); reflexivity.
  Qed.
End Shared.

(** ** What the ledger allows

    [model/sessions.py: left_to]: what the others took of a root, each rounded up
    to whole units; and less, if a cap leaves less.  Of ε, ρ and δ alike. *)

Section Ledger.
  Variables (roots m : nat) (budget : nat -> vector) (book_of : nat -> nat) (keys_of : nat -> option nat) (grain : R)
    (at_most : Public -> nat -> nat -> vector).
  Hypothesis grain_pos : 0 < grain.

  Definition left_in_books (A : Public) (i b x : nat) : R :=
    Rmin (at_most A i b x)
      (budget b x - sum (fun j => if Nat.eqb j i then 0 else Sessions.rounded_up grain (counters (A j b) x)) (seq 0 m)).

  Lemma left_in_books_respects : respects roots m budget left_in_books.
  Proof.
    intros A i b x _ _. unfold left_in_books, others. eapply Rle_trans; [apply Rmin_r|].
    assert (sum (fun j => if Nat.eqb j i then 0 else counters (A j b) x) (seq 0 m) <=
      sum (fun j => if Nat.eqb j i then 0 else Sessions.rounded_up grain (counters (A j b) x)) (seq 0 m)); [|lra].
    apply sum_le. intros j _. destruct (Nat.eqb j i); [lra|]. apply Sessions.rounded_up_ge, grain_pos.
  Qed.

  (** What an analyst's cap leaves a session. *)
  Variables (analyst : nat -> nat) (cap : nat -> nat -> option R).
  Definition left_of_cap (A : Public) (i x : nat) : R :=
    match cap (analyst i) x with
    | Some c => c - sum (fun j => if (Nat.eqb (analyst i) (analyst j) && negb (Nat.eqb j i))%bool
        then Sessions.rounded_up grain (counters (A j (book_of x)) x) else 0) (seq 0 m)
    | None => budget (book_of x) x
    end.
  Hypothesis at_most_capped : forall A i x, at_most A i (book_of x) x <= left_of_cap A i x.

  Lemma left_in_books_keeps_to a x c : cap a x = Some c ->
    keeps_to m left_in_books (fun j => Nat.eqb a (analyst j)) (book_of x) x c.
  Proof.
    intros Hc A i _ Hm. apply Nat.eqb_eq in Hm. subst a. unfold left_in_books. eapply Rle_trans; [apply Rmin_l|].
    eapply Rle_trans; [apply at_most_capped|]. unfold left_of_cap. rewrite Hc. apply Rplus_le_compat_l, Ropp_le_contravar.
    apply sum_le. intros j _. destruct (Nat.eqb (analyst i) (analyst j) && negb (Nat.eqb j i))%bool; [|lra].
    apply Sessions.rounded_up_ge, grain_pos.
  Qed.

  (** What an analyst's sessions were charged is within the cap, in the unit of the
      root's budget. *)
  Theorem caps_hold_in_books S rates kind empty scheduler D p t a x c : (x < roots)%nat -> cap a x = Some c -> 0 <= c ->
    charged m (fun j => Nat.eqb a (analyst j)) (public S (after S rates roots m book_of keys_of kind left_in_books scheduler D p
      (nothing S roots empty) t)) (book_of x) x <= c.
  Proof.
    intros Hx Hc H0. apply (limits_hold S rates roots m budget book_of keys_of kind empty left_in_books left_in_books_respects scheduler); auto.
    - unfold own, books_of. cbn [existsb]. rewrite Nat.eqb_refl. reflexivity.
    - apply left_in_books_keeps_to, Hc.
  Qed.
End Ledger.
