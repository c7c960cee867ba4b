(** * The general semantics

    Several roots, each with its own budget; tables with sensitivity vectors;
    partitions that a program may hold, query in any order, transform, join and
    partition again.  The rules carry the names of [model/semantics.py]; the
    accounting is [Sources]. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale.
Import ListNotations.
Open Scope R_scope.

Section General.
  Variable S : Tables.
  Notation table := (table S).
  Notation distance := (distance S).
  Variable roots : nat.
  Variable budget : vector.

  (** ** Actions and observations *)

  Inductive Action :=
    | Silent
    | Assign (t : nat) (F : transformation S) (ts : list nat)
    | Partition_ (t : nat) (f : splitter S) (k : nat) (dest : nat)   (* the parts go to dest .. dest+k-1 *)
    | Query (t : nat) (f : splitter S) (Qs : list (mechanism S)) (e : R)
    | AskScale (t : nat)
    | AskBudget
    | AskPrice (t : nat) (e : R).

  Inductive Observation :=
    | Tau
    | Answers (vs : list (answer S))
    | Bottom
    | Scale (s : R)               (* how many records one record may change *)
    | Budget (v : list R)         (* what is left at each root *)
    | Price (v : list R)          (* what each root would pay *)
    | Refused.

  Lemma observation_dec (o o' : Observation) : {o = o'} + {o <> o'}.
  Proof.
    decide equality; try apply Req_EM_T; apply list_eq_dec; try apply Req_EM_T. apply answer_dec.
  Qed.

  Record Client := { program : Type; does : program -> Action; told : program -> Observation -> program }.

  (** ** The rules *)

  Definition Environment := nat -> table * vector.
  Record State := { environment : Environment; accounts : Accounts }.

  (** What a step shows: something already known, or the answers of mechanisms
      still to be run. *)
  Inductive Reply :=
    | Shows (o : Observation)
    | Measures (T : table) (f : splitter S) (Qs : list (mechanism S)) (e : R).
  Definition Transition := (Reply * State)%type.

  Definition table_of (s : State) (t : nat) : table := fst (environment s t).
  Definition sensitivity_of (s : State) (t : nat) : vector := snd (environment s t).

  Definition bind (env : Environment) (t : nat) (x : table * vector) : Environment :=
    fun y => if Nat.eqb y t then x else env y.

  Definition silent (s : State) : Transition := (Shows Tau, s).

  (** Assign: E(t) = (⟦F⟧(T_1 … T_n), Σ c_i v_i). *)
  Definition assign (s : State) t F ts : Transition :=
    match combine (sources (accounts s)) (stability S F) (map (sensitivity_of s) ts) with
    | Some v => (Shows Tau, {| environment := bind (environment s) t (apply S F (map (table_of s) ts), v);
                               accounts := accounts s |})
    | None => (Shows Refused, s)
    end.

  (** Partition: part i is a new source; its table depends on it alone. *)
  Definition partition (s : State) t f k dest : Transition :=
    let n := sources (accounts s) in
    (Shows Tau,
     {| environment := fun y => if (Nat.leb dest y && Nat.ltb y (dest + k))%bool
                                then (part S f (y - dest) (table_of s t), unit (n + (y - dest)))
                                else environment s y;
        accounts := divide (accounts s) (sensitivity_of s t) k |}).

  (** Query: measure, and charge every source the table depends on. *)
  Definition query (s : State) t f Qs e (charged : Accounts) : Transition :=
    (Measures (table_of s t) f Qs e, {| environment := environment s; accounts := charged |}).

  (** Query⊥: the charge does not fit; nothing changes. *)
  Definition query_bottom (s : State) : Transition := (Shows Bottom, s).

  Definition ask_scale (s : State) t : Transition :=
    (Shows (Scale (scaling_factor roots (accounts s) (sensitivity_of s t))), s).

  Definition ask_budget (s : State) : Transition :=
    (Shows (Budget (map (fun x => budget x - counters (accounts s) x) (seq 0 roots))), s).

  Definition ask_price (s : State) t e : Transition :=
    (Shows (Price (map (price (accounts s) (sensitivity_of s t) e) (seq 0 roots))), s).

  (** The one rule that applies.  An e that is not positive is refused. *)
  Definition step (s : State) (a : Action) : Transition :=
    match a with
    | Silent => silent s
    | Assign t F ts => assign s t F ts
    | Partition_ t f k dest => partition s t f k dest
    | Query t f Qs e =>
        if Rlt_dec 0 e then
          let charged := charge (accounts s) (sensitivity_of s t) e in
          if fits roots budget charged then query s t f Qs e charged else query_bottom s
        else (Shows Refused, s)
    | AskScale t => ask_scale s t
    | AskBudget => ask_budget s
    | AskPrice t e => if Rlt_dec 0 e then ask_price s t e else (Shows Refused, s)
    end.

  Definition chances (r : Reply) : Observation -> R :=
    match r with
    | Shows o => certain observation_dec o
    | Measures T f Qs e => fun o => match o with Answers vs => parallel S f e T 0 Qs vs | _ => 0 end
    end.

  (** ** Traces *)

  Variable client : Client.
  Definition reply (p : program client) (s : State) : Reply := fst (step s (does client p)).
  Definition next (p : program client) (s : State) : State := snd (step s (does client p)).

  (** [trace p s t w p' s']: from program p and state s the observer sees t with
      probability w, and p' and s' are reached. *)
  Inductive trace : program client -> State -> list Observation -> R -> program client -> State -> Prop :=
    | trace_nil : forall p s, trace p s [] 1 p s
    | trace_cons : forall p s o t w p' s', trace (told client p o) (next p s) t w p' s' ->
        trace p s (o :: t) (chances (reply p s) o * w) p' s'.

  Theorem trace_deterministic t : forall p s w1 p1 s1 w2 p2 s2,
    trace p s t w1 p1 s1 -> trace p s t w2 p2 s2 -> w1 = w2 /\ p1 = p2 /\ s1 = s2.
  Proof.
    induction t as [|o t IH]; intros p s w1 p1 s1 w2 p2 s2 H K; inversion H; subst; inversion K; subst; auto.
    match goal with X : trace _ _ t ?a _ _, Y : trace _ _ t ?b _ _ |- _ => destruct (IH _ _ _ _ _ _ _ _ X Y)
      as (-> & -> & ->) end.
    auto.
  Qed.

  (** The probability of a trace, if it has length n; else 0.  And the state
      that it reaches. *)
  Fixpoint probability (n : nat) (p : program client) (s : State) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => chances (reply p s) o * probability n (told client p o) (next p s) t
    | _, _ => 0
    end.

  Fixpoint reached (p : program client) (s : State) (t : list Observation) : State :=
    match t with [] => s | o :: t => reached (told client p o) (next p s) t end.

  Lemma probability_trace t : forall p s, exists p', trace p s t (probability (length t) p s t) p' (reached p s t).
  Proof.
    induction t as [|o t IH]; intros p s; simpl; [exists p; constructor|].
    destruct (IH (told client p o) (next p s)) as [p' H]. exists p'. constructor. exact H.
  Qed.

  Lemma probability_length n : forall p s t, length t <> n -> probability n p s t = 0.
  Proof.
    induction n as [|n IH]; intros p s [|o t] H; simpl in *; try lia; auto. rewrite IH by lia. ring.
  Qed.

  (** *** The traces of one length are a probability distribution *)

  Definition runnable (r : Reply) : Prop := match r with Shows _ => True | Measures _ _ _ e => 0 < e end.

  Lemma step_runnable s a : runnable (fst (step s a)).
  Proof.
    destruct a; simpl; auto.
    - unfold assign. destruct (combine _ _ _); exact I.
    - destruct (Rlt_dec 0 e); [|exact I]. destruct (fits _ _ _); [assumption|exact I].
    - destruct (Rlt_dec 0 e); exact I.
  Qed.

  Lemma chances_distribution r : runnable r -> distribution (chances r).
  Proof.
    destruct r as [o|T f Qs e]; simpl; intros H; [apply certain_distribution|].
    eapply distribution_ext; [|apply (distribution_rename (parallel S f e T 0 Qs) Answers
      (fun o => match o with Answers vs => Some vs | _ => None end))].
    - intros []; reflexivity.
    - intros o vs. destruct o; split; intros K; congruence.
    - apply parallel_distribution, H.
  Qed.

  Theorem traces_sum_to_one n : forall p s, distribution (probability n p s).
  Proof.
    induction n as [|n IH]; intros p s.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution observation_dec (chances (reply p s))
        (fun o => probability n (told client p o) (next p s)))].
      + intros []; reflexivity.
      + apply chances_distribution, step_runnable.
      + intros o. apply IH.
  Qed.

  Lemma probability_nonneg n p s t : 0 <= probability n p s t.
  Proof. apply traces_sum_to_one. Qed.

  (** ** The invariant

      d gives the true distance of every source between two runs.  The public
      part speaks of one run, [similar] of two. *)

  Record sound (s : State) (d : vector) : Prop := {
    sound_ordered : ordered roots (sources (accounts s)) (partitions (accounts s));
    sound_capped : capped (counters (accounts s)) (partitions (accounts s));                        (* (M) *)
    sound_within : forall x, (x < roots)%nat -> counters (accounts s) x <= budget x;                (* (M) *)
    sound_geometric : geometric d (partitions (accounts s));                                        (* (G) *)
    sound_fresh : forall x, (sources (accounts s) <= x)%nat -> counters (accounts s) x = 0;
    sound_nonneg : forall t x, 0 <= sensitivity_of s t x;
    sound_support : forall t x, (sources (accounts s) <= x)%nat -> sensitivity_of s t x = 0;
    sound_distance : forall x, 0 <= d x;
    sound_certificate : certificate (accounts s) }.

  (** (T): the public state agrees, and every table is within its sensitivity. *)
  Definition similar (s s' : State) (d : vector) : Prop :=
    accounts s = accounts s' /\ forall t, sensitivity_of s t = sensitivity_of s' t /\
      INR (distance (table_of s t) (table_of s' t)) <= dot (sources (accounts s)) (sensitivity_of s t) d.

  Definition psi (s : State) (d : vector) : R := Psi (accounts s) d.

  Lemma combined_distance n d cs : forall Ts Us vs w, combine n cs vs = Some w -> length Ts = length Us ->
    Forall2 (fun D v => INR D <= dot n v d) (distances S Ts Us) vs ->
    exists m, scale cs (distances S Ts Us) = Some m /\ INR m <= dot n w d.
  Proof.
    induction cs as [|c cs IH]; intros Ts Us vs w H HL HF; destruct vs as [|v vs]; simpl in H; try discriminate.
    - injection H as <-. inversion HF; subst. exists O. split; [reflexivity|]. rewrite dot_zero. simpl. lra.
    - destruct (combine n cs vs) as [u|] eqn:E; [|discriminate].
      destruct Ts as [|T Ts], Us as [|U Us]; simpl in *; try discriminate; inversion HF; subst.
      destruct (IH Ts Us vs u E) as (m & Hm & Hle); auto. rewrite Hm. destruct c as [c|].
      + injection H as <-. exists (c * distance T U + m)%nat. split; [reflexivity|].
        rewrite dot_linear, plus_INR, mult_INR.
        assert (INR c * INR (distance T U) <= INR c * dot n v d) by (apply Rmult_le_compat_l;
          [apply pos_INR|assumption]). lra.
      + destruct (public n v) eqn:Hp; [|discriminate]. injection H as <-. exists m. split; [|assumption].
        rewrite (dot_public n v d (public_zero n v Hp)) in *.
        assert (D0 : distance T U = O) by (apply INR_eq; simpl; pose proof (pos_INR (distance T U)); lra).
        simpl. rewrite D0. reflexivity.
  Qed.

  Lemma assigned_distance s s' d F ts v : similar s s' d ->
    combine (sources (accounts s)) (stability S F) (map (sensitivity_of s) ts) = Some v ->
    INR (distance (apply S F (map (table_of s) ts)) (apply S F (map (table_of s') ts))) <=
      dot (sources (accounts s)) v d.
  Proof.
    intros [_ HT] H.
    destruct (combined_distance (sources (accounts s)) d (stability S F) (map (table_of s) ts) (map (table_of s')
      ts) _ v H) as (m & Hm & Hle).
    - rewrite !map_length. reflexivity.
    - clear H. induction ts; simpl; constructor; auto. apply HT.
    - eapply Rle_trans; [|exact Hle]. apply le_INR. apply lemma1; auto. rewrite !map_length. reflexivity.
  Qed.

  Lemma parts_distance f n k T U :
    segment n k (fun _ => 1) (fun x => INR (distance (part S f (x - n) T) (part S f (x - n) U))) =
    INR (sum_from 0 k (fun i => distance (part S f i T) (part S f i U))).
  Proof.
    assert (K : forall k i g, sum_from i (Datatypes.S k) g = (sum_from i k g + g (i + k))%nat).
    { induction k0 as [|j IH]; intros i g; [simpl; rewrite (Nat.add_0_r i); lia|].
      change (sum_from i (Datatypes.S (Datatypes.S j)) g) with (g i + sum_from (Datatypes.S i) (Datatypes.S j) g)%nat.
      rewrite IH. replace (i + Datatypes.S j)%nat with (Datatypes.S i + j)%nat by lia. cbn [sum_from]. lia. }
    induction k as [|k IH]; [reflexivity|]. rewrite K, plus_INR. simpl. rewrite IH.
    replace (n + k - n)%nat with k by lia. ring.
  Qed.

  (** What a step may do to the odds. *)
  Definition advances (s s' : State) (d : vector) (r r' : Reply) (u u' : State) : Prop :=
    exists d', sound u d' /\ similar u u' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
      forall o, chances r o <= chances r' o * exp (psi u d' - psi s d).

  (** A step that shows what is public anyway, and does not move Ψ. *)
  Definition keeps (s s' : State) (d : vector) (r r' : Reply) (u u' : State) : Prop :=
    exists d', sound u d' /\ similar u u' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\ psi u d' = psi s d /\
      exists o, r = Shows o /\ r' = Shows o.

  Lemma keeps_advances s s' d r r' u u' : keeps s s' d r r' u u' -> advances s s' d r r' u u'.
  Proof.
    intros (d' & H & K & D & E & o & -> & ->). exists d'. repeat (split; auto). intros o'. rewrite E, exp_nothing. lra.
  Qed.

  Lemma shown_keeps s s' d o : sound s d -> similar s s' d -> keeps s s' d (Shows o) (Shows o) s s'.
  Proof. intros H K. exists d. split; [exact H|]. split; [exact K|]. split; [auto|]. split; [reflexivity|]. exists o. auto. Qed.

  Lemma advances_shown s s' d o : sound s d -> similar s s' d -> advances s s' d (Shows o) (Shows o) s s'.
  Proof. intros H K. apply keeps_advances, shown_keeps; assumption. Qed.

  (** ** One step *)

  Lemma assign_keeps s s' d t F ts : sound s d -> similar s s' d ->
    keeps s s' d (fst (assign s t F ts)) (fst (assign s' t F ts)) (snd (assign s t F ts)) (snd (assign s' t F ts)).
  Proof.
    intros H K. pose proof K as [HA HT]. unfold assign. rewrite <- HA.
    replace (map (sensitivity_of s') ts) with (map (sensitivity_of s) ts) by (apply map_ext; intros; apply HT).
    destruct (combine _ _ _) as [v|] eqn:E; simpl; [|apply shown_keeps; assumption].
    exists d. split; [|split; [|split; [auto|split; [reflexivity|eauto]]]].
    - destruct H. split; simpl; auto; intros y x; unfold sensitivity_of; simpl; unfold bind;
        destruct (Nat.eqb y t); simpl; try (apply sound_nonneg0); try (apply sound_support0).
      + apply (combine_nonneg _ _ _ _ E). intros w Hw. apply in_map_iff in Hw. destruct Hw as (z & <- & _). auto.
      + intros Hx. apply (combine_support _ _ _ _ E). intros w Hw. apply in_map_iff in Hw.
        destruct Hw as (z & <- & _). auto.
    - split; simpl; auto. intros y. unfold sensitivity_of, table_of; simpl; unfold bind.
      destruct (Nat.eqb y t); [|apply HT].
      split; [reflexivity|]. simpl. apply assigned_distance; assumption.
  Qed.

  (** The new sources get the true distances of the parts; by the stability of
      the partition (G) holds for them, and Ψ does not move. *)
  Lemma partition_keeps s s' d t f k dest : sound s d -> similar s s' d ->
    keeps s s' d (fst (partition s t f k dest)) (fst (partition s' t f k dest)) (snd (partition s t f k dest))
      (snd (partition s' t f k dest)).
  Proof.
    intros H K. pose proof K as [HA HT]. destruct H. unfold partition. simpl. rewrite <- HA.
    set (n := sources (accounts s)) in *.
    set (d' := fun x => if Nat.ltb x n then d x else INR (distance (part S f (x - n) (table_of s t))
      (part S f (x - n) (table_of s' t)))).
    assert (Hold : forall x, (x < n)%nat -> d x = d' x) by (intros x Hx; unfold d'; destruct (Nat.ltb_spec x n);
      [auto|lia]).
    assert (Hd' : forall x, 0 <= d' x) by (intros x; unfold d'; destruct (Nat.ltb x n); auto using pos_INR).
    assert (Hdot : forall y, dot n (sensitivity_of s y) d' = dot n (sensitivity_of s y) d).
    { intros y. apply dot_ext. intros; split; auto. symmetry; auto. }
    pose proof (ordered_ge roots _ _ sound_ordered0) as Hr. fold n in Hr.
    destruct (HT t) as [Ht HD].
    exists d'. split; [|split; [|split; [|split; [|eauto]]]].
    - split; simpl; fold n; auto.
      + repeat split; auto. lra.
      + constructor; auto. simpl. intros i Hi. rewrite sound_fresh0; [lra|unfold n; lia].
      + constructor; [|eapply geometric_ext; eauto]. simpl. fold n. rewrite Hdot.
        rewrite (segment_ext n k (fun _ => 1) (fun _ => 1) d' (fun x => INR (distance (part S f (x - n)
          (table_of s t)) (part S f (x - n) (table_of s' t))))).
        { rewrite parts_distance. eapply Rle_trans; [apply le_INR, part_stable|exact HD]. }
        intros i Hi. split; auto. unfold d'. destruct (Nat.ltb_spec (n + i) n); [lia|auto].
      + intros x Hx. apply sound_fresh0. fold n. lia.
      + intros y x. unfold sensitivity_of. simpl.
        destruct (Nat.leb dest y && Nat.ltb y (dest + k))%bool; simpl; [apply unit_nonneg|apply sound_nonneg0].
      + intros y x Hx. unfold sensitivity_of. simpl.
        destruct (Nat.leb_spec dest y), (Nat.ltb_spec y (dest + k)); simpl;
          try (apply sound_support0; fold n; lia). apply unit_other. lia.
      + apply certificate_divide; auto.
    - split; simpl; [unfold sensitivity_of in *; rewrite <- Ht; reflexivity|]. intros y.
      unfold sensitivity_of, table_of; simpl. fold n.
      destruct (Nat.leb_spec dest y), (Nat.ltb_spec y (dest + k)); simpl;
        try (destruct (HT y) as [Hy HDy]; split; [exact Hy|];
             rewrite (dot_support (n + k) n); [unfold sensitivity_of in Hdot; rewrite Hdot; exact HDy|lia|intros;
               apply sound_support0; auto]).
      split; [reflexivity|]. rewrite dot_unit by lia. unfold d'. destruct (Nat.ltb_spec (n + (y - dest)) n); [lia|].
      replace (n + (y - dest) - n)%nat with (y - dest)%nat by lia. unfold table_of. lra.
    - intros x Hx. symmetry. apply Hold. lia.
    - unfold psi. simpl. apply (divide_potential roots (accounts s) (sensitivity_of s t) k d d'); auto.
  Qed.

  (** A charge at any k raises Ψ by exactly k * v·d. *)
  Lemma charge_moves s s' d t k : sound s d -> similar s s' d -> 0 <= k ->
    let charged := charge (accounts s) (sensitivity_of s t) k in
    let u := {| environment := environment s; accounts := charged |} in
    let u' := {| environment := environment s'; accounts := charged |} in
    (forall x, (x < roots)%nat -> counters charged x <= budget x) ->
    sound u d /\ similar u u' d /\ psi u d = psi s d + k * dot (sources (accounts s)) (sensitivity_of s t) d.
  Proof.
    intros H [HA HT] Hk charged u u' HB. destruct H.
    pose proof (settle_correct roots (partitions (accounts s)) (sources (accounts s))
      (fun x => counters (accounts s) x + sensitivity_of s t x * k) sound_ordered0) as HS.
    pose proof (charge_potential roots (accounts s) (sensitivity_of s t) k d sound_ordered0) as HP.
    pose proof (certificate_charge roots (accounts s) (sensitivity_of s t) k sound_ordered0 (sound_nonneg0 t)
      Hk sound_certificate0) as HC.
    split; [|split; [|exact HP]]; unfold u, u', charged, charge in *; clear u u' charged;
      destruct (settle _ _) as [qs C']; simpl in *.
    - destruct HS as (W & Hn & _ & Hc & _ & Hg). split; simpl; auto.
      intros x Hx. rewrite Hn, sound_fresh0, (sound_support0 t); auto. ring.
    - split; [reflexivity|]. intros y. apply HT.
  Qed.

  (** ** Privacy, if the mechanisms promise it *)

  Hypothesis promise : private S.

  (** A query's answers change the odds by at most exp (e * v·d), and Ψ grows by
      exactly e * v·d. *)
  Lemma query_advances s s' d t f Qs e : sound s d -> similar s s' d -> 0 < e ->
    fits roots budget (charge (accounts s) (sensitivity_of s t) e) = true ->
    advances s s' d (Measures (table_of s t) f Qs e) (Measures (table_of s' t) f Qs e)
      {| environment := environment s; accounts := charge (accounts s) (sensitivity_of s t) e |}
      {| environment := environment s'; accounts := charge (accounts s) (sensitivity_of s t) e |}.
  Proof.
    intros H K He Hfit. exists d.
    destruct (charge_moves s s' d t e H K (Rlt_le _ _ He) (fits_within _ _ _ Hfit)) as (Hu & Ku & E).
    split; [exact Hu|]. split; [exact Ku|]. split; [auto|]. intros o. rewrite E. destruct K as [_ HT].
    replace (psi s d + _ - psi s d) with (e * dot (sources (accounts s)) (sensitivity_of s t) d) by ring.
    destruct o; simpl; try lra.
    eapply Rle_trans; [apply (parallel_private S promise f e (table_of s t) (table_of s' t)); assumption|].
    apply Rmult_le_compat_l; [apply parallel_nonneg; assumption|].
    apply exp_mono, Rmult_le_compat_l; [lra|apply HT].
  Qed.

  Lemma step_advances s s' d a : sound s d -> similar s s' d ->
    advances s s' d (fst (step s a)) (fst (step s' a)) (snd (step s a)) (snd (step s' a)).
  Proof.
    intros H K. pose proof K as [HA HT]. destruct a; simpl.
    - apply advances_shown; assumption.
    - apply keeps_advances, assign_keeps; assumption.
    - apply keeps_advances, partition_keeps; assumption.
    - destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht.
      destruct (Rlt_dec 0 e) as [He|]; [|apply advances_shown; assumption].
      destruct (fits roots budget (charge (accounts s) (sensitivity_of s t) e)) eqn:Hfit; [|apply advances_shown;
        assumption].
      apply query_advances; assumption.
    - unfold ask_scale. destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht. apply advances_shown; assumption.
    - unfold ask_budget. rewrite <- HA. apply advances_shown; assumption.
    - destruct (Rlt_dec 0 e); [|apply advances_shown; assumption]. unfold ask_price.
      destruct (HT t) as [Ht _]. rewrite <- HA, <- Ht. apply advances_shown; assumption.
  Qed.

  (** ** All steps *)

  Theorem trace_advances t : forall p s s' d, sound s d -> similar s s' d -> exists d',
    sound (reached p s t) d' /\ similar (reached p s t) (reached p s' t) d' /\
    (forall x, (x < roots)%nat -> d' x = d x) /\
    probability (length t) p s t <= probability (length t) p s' t * exp (psi (reached p s t) d' - psi s d).
  Proof.
    induction t as [|o t IH]; intros p s s' d H K; simpl.
    - exists d. repeat (split; auto). rewrite exp_nothing. lra.
    - destruct (step_advances s s' d (does client p) H K) as (d1 & H1 & K1 & D1 & L1).
      fold (reply p s) (reply p s') (next p s) (next p s') in *.
      destruct (IH (told client p o) _ _ d1 H1 K1) as (d2 & H2 & K2 & D2 & L2).
      exists d2. split; [exact H2|]. split; [exact K2|]. split; [intros; rewrite D2; auto|].
      set (b := psi (next p s) d1) in *. set (c := psi (reached (told client p o) (next p s) t) d2) in *.
      replace (c - psi s d) with ((b - psi s d) + (c - b)) by ring. rewrite exp_plus.
      match goal with |- _ <= ?x * ?y * (?u * ?v) => replace (x * y * (u * v)) with ((x * u) * (y * v)) by ring end.
      apply Rmult_le_compat; auto using probability_nonneg. apply chances_distribution, step_runnable.
  Qed.

  (** ** The theorem *)

  Variable empty : table.

  (** Variable x < roots holds root x, with sensitivity 1 to it alone. *)
  Definition init (D : nat -> table) : State :=
    {| environment := fun t => if Nat.ltb t roots then (D t, unit t) else (empty, fun _ => 0);
       accounts := opening roots |}.

  Definition root_distances (D D' : nat -> table) : vector := fun x => INR (distance (D x) (D' x)).

  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

  Lemma init_sound D D' : sound (init D) (root_distances D D').
  Proof.
    split; simpl; auto.
    - constructor.
    - constructor.
    - intros t x. unfold sensitivity_of. simpl. destruct (Nat.ltb t roots); simpl; [apply unit_nonneg|lra].
    - intros t x Hx. unfold sensitivity_of. simpl. destruct (Nat.ltb_spec t roots); simpl; auto. apply unit_other.
      lia.
    - intros x. apply pos_INR.
    - apply certificate_opening.
  Qed.

  Lemma init_similar D D' : similar (init D) (init D') (root_distances D D').
  Proof.
    split; [reflexivity|]. intros t. unfold sensitivity_of, table_of. simpl.
    destruct (Nat.ltb_spec t roots); simpl; (split; [reflexivity|]).
    - rewrite dot_unit by assumption. unfold root_distances. lra.
    - rewrite distance_refl, dot_zero. simpl. lra.
  Qed.

  (** The odds of any trace differ by at most the exponential of what the roots
      have paid, Σ_x C_x d_x; the counters stay within the budgets; the public
      state reached is the same. *)
  Theorem joint_dp_spent p t D D' :
    let s := reached p (init D) t in let s' := reached p (init D') t in
    accounts s = accounts s' /\ (forall v, sensitivity_of s v = sensitivity_of s' v) /\ certificate (accounts s) /\
    (forall x, (x < roots)%nat -> counters (accounts s) x <= budget x) /\
    probability (length t) p (init D) t <=
      probability (length t) p (init D') t * exp (dot roots (counters (accounts s)) (root_distances D D')).
  Proof.
    intros s s'. destruct (trace_advances t p _ _ _ (init_sound D D') (init_similar D D'))
      as (d & H & [KA KT] & Hd & L).
    fold s s' in H, KA, KT, L. pose proof H as H'. destruct H'.
    split; [exact KA|]. split; [intros; apply KT|]. split; [assumption|]. split; [assumption|].
    eapply Rle_trans; [exact L|]. apply Rmult_le_compat_l; [apply probability_nonneg|]. apply exp_mono.
    assert (Z : psi (init D) (root_distances D D') = 0).
    { unfold psi, Psi, potential. simpl. rewrite dot_zero. ring. }
    rewrite Z, Rminus_0_r. unfold psi, Psi.
    eapply Rle_trans; [apply (potential_le_roots roots); eassumption|].
    rewrite (dot_ext roots _ (counters (accounts s)) d (root_distances D D')); [lra|]. intros; split; auto.
  Qed.

  (** Each root x is budget(x)-private, jointly and additively, for every
      program. *)
  Theorem joint_dp n p t D D' :
    probability n p (init D) t <= probability n p (init D') t * exp (dot roots budget (root_distances D D')).
  Proof.
    destruct (Nat.eq_dec (length t) n) as [<-|Hn].
    - destruct (joint_dp_spent p t D D') as (_ & _ & _ & HB & L).
      eapply Rle_trans; [exact L|]. apply Rmult_le_compat_l; [apply probability_nonneg|].
      apply exp_mono, dot_mono; auto. intros. apply pos_INR.
    - rewrite !probability_length by assumption. lra.
  Qed.

  (** One root changed by one record, the others not: budget(x)-privacy, for any
      set of traces. *)
  Corollary root_dp n p (event : list (list Observation)) D D' x : (x < roots)%nat ->
    (distance (D x) (D' x) <= 1)%nat -> (forall y, y <> x -> D y = D' y) ->
    sum (probability n p (init D)) event <= exp (budget x) * sum (probability n p (init D')) event.
  Proof.
    intros Hx Hd Hy. rewrite <- sum_scale. apply sum_le. intros t _. rewrite Rmult_comm.
    eapply Rle_trans; [apply joint_dp|]. apply Rmult_le_compat_l; [apply probability_nonneg|]. apply exp_mono.
    eapply Rle_trans with (dot roots (fun y => unit x y * 1) (fun _ => budget x)).
    - assert (K : forall m, dot m budget (root_distances D D') <= dot m (fun y => unit x y * 1) (fun _ => budget x)).
      { induction m as [|m IH]; simpl; [lra|]. apply Rplus_le_compat; [exact IH|].
        unfold root_distances, unit. destruct (Nat.eqb_spec m x) as [->|E].
        - pose proof (budget_nonneg x Hx). apply le_INR in Hd. simpl in Hd. nra.
        - rewrite (Hy m E), distance_refl. simpl. lra. }
      apply K.
    - rewrite (dot_ext roots _ (unit x) _ (fun _ => budget x)) by (intros; split; auto; ring).
      rewrite dot_unit by assumption. lra.
  Qed.
End General.

(** ** Whatever the budgets are *)

Section Well.
  Variables (S : Tables) (roots : nat).

  (** Everything that [sound] says but the budgets: each counter is within
      itself. *)
  Definition well (s : State S) (d : vector) : Prop := sound S roots (counters (accounts S s)) s d.

  Lemma rebudget b b' s d : sound S roots b s d -> (forall x, (x < roots)%nat -> counters (accounts S s) x <= b' x) ->
    sound S roots b' s d.
  Proof. intros [] H. split; assumption. Qed.

  Lemma charge_grows A v e : ordered roots (sources A) (partitions A) -> (forall x, 0 <= v x) -> 0 <= e ->
    forall x, counters A x <= counters (charge A v e) x.
  Proof.
    intros W Hv He x. unfold charge.
    pose proof (settle_correct roots (partitions A) (sources A) (fun x => counters A x + v x * e) W) as H.
    destruct (settle _ _) as [qs C]. simpl. destruct H as (_ & _ & H & _). specialize (H x). simpl in H.
    assert (0 <= v x * e) by (apply Rmult_le_pos; auto). lra.
  Qed.

  (** ** A root arrives *)

  Definition arrive (s : State S) (x : nat) (T : table S) : State S :=
    {| environment := bind S (environment S s) x (T, unit x); accounts := accounts S s |}.

  Lemma arrive_well s d x T : well s d -> (x < roots)%nat -> well (arrive s x T) d.
  Proof.
    intros H Hx. destruct H. pose proof (ordered_ge roots _ _ sound_ordered0) as Hr.
    split; auto; intros t y; unfold sensitivity_of; simpl; unfold bind; destruct (Nat.eqb t x); simpl.
    - apply unit_nonneg.
    - apply sound_nonneg0.
    - intros Hy. apply unit_other. lia.
    - apply sound_support0.
  Qed.

  Lemma arrive_similar s s' d x T T' : well s d -> similar S s s' d -> (x < roots)%nat ->
    INR (distance S T T') <= d x -> similar S (arrive s x T) (arrive s' x T') d.
  Proof.
    intros H [HA HT] Hx Hd. destruct H. pose proof (ordered_ge roots _ _ sound_ordered0) as Hr.
    split; [exact HA|]. intros t. unfold sensitivity_of, table_of. simpl. unfold bind.
    destruct (Nat.eqb t x); simpl; [|apply HT]. split; [reflexivity|]. rewrite dot_unit by lia. exact Hd.
  Qed.
End Well.
